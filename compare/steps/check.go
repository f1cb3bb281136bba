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

// usesOf lists what the blocks of some layers use, each kind once; of one layer, what its pieces use. Empty ones use
// nothing.
func (r *recording) usesOf(from, to int) (kinds []kernelUses) {
	for _, run := range r.runs[r.parts[from]:r.parts[to]] {
		u := kernelUses{}
		for _, l := range r.launches[run.First : run.Last+1] {
			if l.Anchor == ExpertGEMM && (u[l.Name] == 0 || !r.chunks) {
				u[l.Name]++
			}
		}
		if len(u) > 0 && !slices.ContainsFunc(kinds, func(k kernelUses) bool { return maps.Equal(k, u) }) {
			kinds = append(kinds, u)
		}
	}
	return kinds
}

// unlike lists the steps whose layers have different numbers of blocks, or in which some of these have a part of
// another's GEMMs: microbatches overlap, or kernels are tuned. The outermost layers, which the ends of the recording
// may cut, may have fewer, but for a first one that is as in the next step.
func (r *recording) unlike(steps []stretch) (list []int) {
	for n, s := range steps {
		from, to := max(s.from, 1), min(s.to, len(r.layers)-1)
		if s.from == 0 && n+1 < len(steps) &&
			slices.EqualFunc(r.usesOf(0, 1), r.usesOf(s.to, s.to+1), maps.Equal[kernelUses, kernelUses]) {
			from = 0
		}
		other := false
		for i := from; i < to; i++ {
			other = other || r.parts[i+1]-r.parts[i] != r.parts[from+1]-r.parts[from]
		}
		kinds := r.usesOf(from, to)
		for i, u := range kinds {
			more := slices.Concat(kinds[:i], kinds[i+1:], r.usesOf(s.from, from), r.usesOf(to, s.to))
			other = other || slices.ContainsFunc(more, func(o kernelUses) bool { return !maps.Equal(o, u) && u.within(o) })
		}
		if other {
			list = append(list, n)
		}
	}
	return list
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
		times := map[int][]float64{} // of GEMMs by their places in a layer
		for _, layer := range r.layers[s.from:s.to] {
			n := 0
			for _, l := range r.launches[layer.First : layer.Last+1] {
				if l.Anchor == ExpertGEMM {
					times[n], n = append(times[n], float64(l.NS)), n+1
				}
			}
		}
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
