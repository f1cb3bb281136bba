package steps

import (
	"maps"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// kernelUses are the GEMMs of a block, by name.
type kernelUses map[int32]int

// within reports whether all GEMMs of a block are in another.
func (k kernelUses) within(o kernelUses) bool {
	for name, n := range k {
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
func (r *recording) overlap(steps []stretch) bool {
	for _, s := range steps {
		from, to := max(s.from, 1), min(s.to, len(r.layers)-1)
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
// GEMMs than their neighbors and their likes in the next step, no attention before them, or no collective behind.
func (r *recording) cut(steps []stretch) [2]bool {
	n := len(r.layers)
	other := func(i, j int) bool {
		a, b := r.usesOf(i, i+1), r.usesOf(j, j+1)
		return r.parts[i+1]-r.parts[i] != r.parts[j+1]-r.parts[j] ||
			!slices.EqualFunc(a, b, maps.Equal[kernelUses, kernelUses])
	}
	first, last := steps[0].to-steps[0].from, n-1-steps[len(steps)-1].to+steps[len(steps)-1].from
	has := func(i int, a Anchor) bool {
		return slices.ContainsFunc(r.segment(i), func(l Launch) bool { return l.Anchor == a })
	}
	bare := !has(n, Collective) && has(n-1, Collective)
	return [2]bool{other(0, 1) && other(0, first) || !has(0, Attention),
		other(n-1, n-2) && other(n-1, last) || bare}
}

const (
	mostSteady  = 0.03 // the standard deviation of a GEMM's time over layers, over the mean, where all tokens pass
	leastUneven = 0.06 // the same of GEMMs whose tokens depend on the load
	leastTime   = 0.05 // of a GEMM that counts, over the longest
)

// sharedBehind reports whether, of more GEMMs in a layer than two, some take equally long in
// all layers of half of the steps and others do not: the other half may be of another kind. Chunks
// of tokens differ alike.
func (r *recording) sharedBehind(steps []stretch) bool {
	shared, several := 0, 0
	for _, s := range steps {
		times := r.gemmTimes(s.from, s.to)
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
		if several++; even && odd {
			shared++
		}
	}
	return shared > 0 && 2*shared >= several
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
