package steps

import "slices"

// recording is one rank's launches, cut into runs of expert GEMMs, and these joined to
// layers.
type recording struct {
	launches []Launch
	runs     []Block
	layers   []Block
	parts    []int // the first run of each layer, and the number of runs behind the last
	chunks   bool  // busy ranks run more chunks of a layer's tokens
}

// fewestBlocks is less than two steps of two layers have.
const fewestBlocks = 4

// runsOf are the runs of expert GEMMs with no anchors between them but GEMMs and
// norms, of shared experts.
func runsOf(launches []Launch) (runs []Block) {
	inside := false
	for i, l := range launches {
		switch l.Anchor {
		case ExpertGEMM:
			if !inside {
				runs = append(runs, Block{First: i})
			}
			runs[len(runs)-1].Last, inside = i, true
		case Attention, Router, Collective, Backward:
			inside = false
		}
	}
	return runs
}

// join makes layers of the runs, and says why that cannot be: each run is then one.
func (r *recording) join() (unknown string) {
	r.layers = r.runs
	switch {
	case slices.ContainsFunc(r.launches, func(l Launch) bool { return l.Anchor == Backward }):
		return backwardToo
	case len(r.runs) < fewestBlocks:
		return fewSteps
	}
	layers, parts := slices.Clone(r.runs[:1]), []int{0}
	routed, several := true, [2]bool{} // gaps of several dense GEMMs and no mixer, without a router and with one
	within, again := false, false      // attention within a step, and a router where there is none
	for i := 1; i < len(r.runs); i++ {
		var n [Norm + 1]int
		sure := false
		for _, l := range r.launches[r.runs[i-1].Last+1 : r.runs[i].First] {
			n[l.Anchor]++
			sure = sure || l.Mark == Sure
		}
		if n[Attention] > 0 {
			within = within || !sure
			routed = routed && n[Router] > 0
			layers, parts = append(layers, r.runs[i]), append(parts, i)
			continue
		}
		layers[len(layers)-1].Last = r.runs[i].Last
		again = again || n[Router] > 0
		if n[Dense] > 1 { // the gate is one
			several[min(n[Router], 1)] = true
		}
	}
	switch {
	case len(layers) == 1, again && !within: // a step of one layer in parts is one of layers with unknown attention
		return noAttention
	case several[1] || several[0] && !routed: // where every layer has a router, what has none is no layer
		return denseBetween
	}
	if r.layers, r.parts = layers, append(parts, len(r.runs)); len(layers) < fewestBlocks {
		return fewSteps
	}
	return ""
}

// segment is what was launched behind layer i−1 and before layer i: segment 0 precedes all layers, the last segment
// follows them.
func (r *recording) segment(i int) []Launch {
	from, to := 0, len(r.launches)
	if i > 0 {
		from = r.layers[i-1].Last + 1
	}
	if i < len(r.layers) {
		to = r.layers[i].First
	}
	return r.launches[from:to]
}
