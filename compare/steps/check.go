package steps

import (
	"maps"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// group is what the layers of some steps have in common.
type group struct {
	gemms, attention map[int32]bool
	dense, experts   []uint32 // durations
}

// kinds reports whether the steps that begin a coarse period differ from the others as a
// whole, as prefill does from decode. All layers of a step have the same tokens: the same
// attention and expert kernels, and equally long dense GEMMs.
func (r *recording) kinds(fine, coarse period) bool {
	var groups [2]group
	for i := range groups {
		groups[i].gemms, groups[i].attention = map[int32]bool{}, map[int32]bool{}
	}
	for i, b := range r.layers {
		g := &groups[0]
		if coarse.at(i) >= fine.layers {
			g = &groups[1]
		}
		for _, l := range r.launches[b.First : b.Last+1] {
			if l.Anchor == ExpertGEMM {
				g.gemms[l.Name] = true
				g.experts = append(g.experts, l.NS)
			}
		}
		if fine.at(i) == 0 {
			continue
		}
		for _, l := range r.segment(i) {
			switch l.Anchor {
			case Attention:
				g.attention[l.Name] = true
			case Dense:
				g.dense = append(g.dense, l.NS)
			}
		}
	}
	a, b := groups[0], groups[1]
	x, y := a.typical(), b.typical()
	return disjoint(a.gemms, b.gemms) || disjoint(a.attention, b.attention) || 2*max(x, y) > 3*min(x, y)
}

// typical is the median time of a dense GEMM, or without any of an expert GEMM.
func (g *group) typical() uint64 {
	times := g.dense
	if len(times) == 0 {
		times = g.experts
	}
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return uint64(times[(len(times)-1)/2]) + uint64(times[len(times)/2])
}

// disjoint reports whether two sets have members and none in common.
func disjoint(a, b map[int32]bool) bool {
	for name := range a {
		if b[name] {
			return false
		}
	}
	return len(a) > 0 && len(b) > 0
}

// leastAlike is the share of steps that must agree on which of their layers are alike.
const leastAlike = 0.75

// contradiction says what speaks against a period, if anything does.
func (r *recording) contradiction(p period) string {
	whole := 0
	for b := p.first; b+p.layers <= len(r.layers); b += p.layers {
		whole++
	}
	switch {
	case p.layers > mostLayers:
		return manyLayers
	case whole < 2:
		return fewSteps
	case r.alike(p, whole, anything) < leastAlike && r.alike(p, whole, anchored) < leastAlike:
		return unlikeSteps
	case r.sharedBehind(p):
		return sharedToo
	case r.lost(p):
		return kernelsLost
	case r.coarser(p):
		return partsOfSteps
	}
	return ""
}

// mostLayers is more than published models have in a step; the deepest has 94.
const mostLayers = 256

func anything(Anchor) bool { return true }

func anchored(a Anchor) bool { return a == Attention || a == Router || a == Collective }

// alike is the share of whole steps whose segments are alike in the pattern of most.
func (r *recording) alike(p period, whole int, take func(Anchor) bool) float64 {
	segments, patterns := newSymbols(), newSymbols()
	times := map[int32]int{}
	most := 0
	for b := p.first; b+p.layers <= len(r.layers); b += p.layers {
		seen := map[int32]int32{}
		var pattern []int32
		for i := b + 1; i < b+p.layers; i++ {
			s := segments.of(r.segment(i), take)
			if _, known := seen[s]; !known {
				seen[s] = int32(len(seen))
			}
			pattern = append(pattern, seen[s])
		}
		patterns.names = pattern
		n := patterns.number()
		times[n]++
		most = max(most, times[n])
	}
	return float64(most) / float64(whole)
}

// kernelUses are the GEMMs of a block, by name.
type kernelUses map[int32]int

// within reports whether all GEMMs of a block are in another.
func (u kernelUses) within(o kernelUses) bool {
	for name, n := range u {
		if o[name] < n {
			return false
		}
	}
	return true
}

// usesOf lists what the blocks of some layers use, each kind once; of one layer, what its pieces use.
func (r *recording) usesOf(from, to int) (kinds []kernelUses) {
	for _, run := range r.runs[r.parts[from]:r.parts[to]] {
		u := kernelUses{}
		for _, l := range r.launches[run.First : run.Last+1] {
			if l.Anchor == ExpertGEMM {
				u[l.Name]++
			}
		}
		if !slices.ContainsFunc(kinds, func(k kernelUses) bool { return maps.Equal(k, u) }) {
			kinds = append(kinds, u)
		}
	}
	return kinds
}

// overlap reports whether the blocks of a step show that microbatches overlap: its layers
// have different numbers of blocks, or some of these a part of another's GEMMs. The
// outermost layers may be cut by the ends of the recording.
func (r *recording) overlap(p period) bool {
	n := len(r.layers)
	for b := p.first; b+p.layers <= n; b += p.layers {
		from, to := max(b, 1), min(b+p.layers, n-1)
		for i := from; i < to; i++ {
			if r.parts[i+1]-r.parts[i] != r.parts[from+1]-r.parts[from] {
				return true
			}
		}
		kinds := r.usesOf(from, to)
		for i, u := range kinds {
			if slices.ContainsFunc(append(kinds[:i:i], kinds[i+1:]...), u.within) {
				return true
			}
		}
	}
	return false
}

// cut reports whether the outermost layers are not whole: they have fewer blocks or other
// GEMMs than their neighbors, no attention before them, or no collective behind.
func (r *recording) cut() (first, last bool) {
	n := len(r.layers)
	other := func(i, j int) bool {
		a, b := r.usesOf(i, i+1), r.usesOf(j, j+1)
		return r.parts[i+1]-r.parts[i] != r.parts[j+1]-r.parts[j] ||
			!slices.EqualFunc(a, b, maps.Equal[kernelUses, kernelUses])
	}
	count := func(i int, a Anchor) (n int) {
		for _, l := range r.segment(i) {
			if l.Anchor == a {
				n++
			}
		}
		return n
	}
	return other(0, 1) || count(0, Attention) == 0, other(n-1, n-2) || count(n, Collective) == 0 && r.combined(n-2)
}

// combined reports whether a collective stands behind a layer, before anything that only
// another layer has.
func (r *recording) combined(layer int) bool {
	for _, l := range r.segment(layer + 1) {
		switch l.Anchor {
		case Collective:
			return true
		case Attention, Router, Dense:
			return false
		}
	}
	return false
}

// lost reports whether expert GEMMs are not there: more attention and routers precede the
// first block, or follow the last, than stand between any two, or between two steps are more
// than twice as many routers as within any. Only kernels that run within steps count:
// attention of another model, of pictures or of drafts, is in none.
func (r *recording) lost(p period) bool {
	n := len(r.layers)
	within := map[int32]bool{}
	for i := 1; i < n; i++ {
		for _, l := range r.segment(i) {
			if p.at(i) > 0 && (l.Anchor == Attention || l.Anchor == Router) {
				within[l.Name] = true
			}
		}
	}
	var both, routers [2]int // the most between layers, of one step and of two
	count := func(i int) (all, routers int) {
		for _, l := range r.segment(i) {
			if within[l.Name] {
				all++
				if l.Anchor == Router {
					routers++
				}
			}
		}
		return all, routers
	}
	for i := 1; i < n; i++ {
		at := 0
		if p.at(i) == 0 {
			at = 1
		}
		b, r := count(i)
		both[at], routers[at] = max(both[at], b), max(routers[at], r)
	}
	head, _ := count(0)
	tail, _ := count(n)
	return max(head, tail) > max(both[0], both[1]) || routers[1] > 2*routers[0]
}

// coarser reports whether, between steps of the same kinds, every m-th segment holds all
// that the others do and more: then these are the ends of steps. What runs within steps
// too, as on another stream, does not count.
func (r *recording) coarser(p period) bool {
	n := len(r.layers)
	inner := map[int32]bool{}
	kinds, last := newSymbols(), int32(-1)
	edges := map[[2]int32][]int{} // boundaries by the kinds of steps on both sides
	for b := p.first - p.layers; b < n; b += p.layers {
		kinds.names = kinds.names[:0]
		seen := map[int32]bool{}
		for i := max(b, 0) + 1; i < min(b+p.layers, n); i++ {
			for _, l := range r.segment(i) {
				inner[l.Name] = true
				if (l.Anchor == Attention || l.Anchor == Dense) && !seen[l.Name] {
					seen[l.Name] = true
					kinds.names = append(kinds.names, l.Name)
				}
			}
		}
		slices.Sort(kinds.names)
		kind := kinds.number()
		if b > 0 {
			edges[[2]int32{last, kind}] = append(edges[[2]int32{last, kind}], b)
		}
		last = kind
	}
	for _, boundaries := range edges {
		if len(boundaries) > fewestMore && r.regularlyMore(boundaries, inner) {
			return true
		}
	}
	return false
}

// fewestMore are the segments that show a regular order.
const fewestMore = 3

// regularlyMore reports whether segments at regular places of a list hold all that the
// others do and more, but for the kernels within steps.
func (r *recording) regularlyMore(list []int, inner map[int32]bool) bool {
	counts := map[int32][]int32{}
	for j, b := range list {
		for _, l := range r.segment(b) {
			if inner[l.Name] {
				continue
			}
			if counts[l.Name] == nil {
				counts[l.Name] = make([]int32, len(list))
			}
			counts[l.Name][j]++
		}
	}
	for _, own := range counts {
		least := slices.Min(own)
		var places []int
		for j, n := range own {
			if n > least {
				places = append(places, j+1)
			}
		}
		if len(places) < fewestMore || len(places) == len(list) {
			continue
		}
		if _, regular := progression(places, len(list)+1); !regular {
			continue
		}
		if !lacking(counts, own, places[0]-1) {
			return true
		}
	}
	return false
}

// lacking reports whether a segment lacks of what one with the fewest of a kernel has.
func lacking(counts map[int32][]int32, own []int32, segment int) bool {
	least := slices.Min(own)
	for _, n := range counts {
		for j := range n {
			if own[j] == least && n[j] > n[segment] {
				return true
			}
		}
	}
	return false
}

const (
	mostSteady  = 0.03 // the standard deviation of a GEMM's time over layers, over the mean, where all tokens pass
	leastUneven = 0.06 // the same of GEMMs whose tokens depend on the load
	leastTime   = 0.05 // of a GEMM that counts, over the longest
)

// sharedBehind reports whether, of more GEMMs in a layer than two, some take equally long in
// all layers of half of the steps and others do not: the other half may be of another kind. Chunks
// of tokens differ alike.
func (r *recording) sharedBehind(p period) bool {
	shared, steps := 0, 0
	for b := p.first; b+p.layers <= len(r.layers); b += p.layers {
		times := r.gemmTimes(b, b+p.layers)
		if len(times) < 3 {
			continue
		}
		longest, even, odd := 0.0, false, false
		for _, t := range times {
			longest = max(longest, stat.Mean(t, nil))
		}
		for _, t := range times {
			mean, deviation := stat.MeanStdDev(t, nil)
			even = even || deviation < mostSteady*mean && mean > leastTime*longest
			odd = odd || deviation > leastUneven*mean
		}
		if steps++; even && odd {
			shared++
		}
	}
	return shared > 0 && 2*shared >= steps
}

// gemmTimes are the times of the expert GEMMs of some layers, by GEMM and layer: of as many
// GEMMs as the first layer has.
func (r *recording) gemmTimes(from, to int) (times [][]float64) {
	for i, layer := range r.layers[from:to] {
		n := 0
		for _, l := range r.launches[layer.First : layer.Last+1] {
			if l.Anchor != ExpertGEMM {
				continue
			}
			if n == len(times) && i == 0 {
				times = append(times, nil)
			}
			if n < len(times) {
				times[n] = append(times[n], float64(l.NS))
			}
			n++
		}
	}
	return times
}
