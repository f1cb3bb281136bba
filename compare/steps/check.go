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
	// mostBeside is the time of shared experts' GEMMs on another stream, over the longest routed one, up to which a replay
	// of one stream tells what even ranks gain: beside drawn ones of 0.6 and more it was off by up to half.
	mostBeside = 0.55
)

// gemmPlace is where an expert GEMM stands: the n-th on its stream in a layer.
type gemmPlace struct {
	stream uint16
	n      int
}

// gemmsOf visits the expert GEMMs of a layer.
func (r *recording) gemmsOf(layer Block, visit func(gemmPlace, *Launch)) {
	n := map[uint16]int{}
	for i := layer.First; i <= layer.Last; i++ {
		if l := &r.launches[i]; l.Anchor == ExpertGEMM {
			visit(gemmPlace{l.Stream, n[l.Stream]}, l)
			n[l.Stream]++
		}
	}
}

// sharedIn reports whether layers hold GEMMs of shared experts beside the routed ones: in at least half of the steps,
// as the rest may be of another kind, some of three or more take equally long in all layers and on all ranks, and
// others do not. Chunks of tokens differ alike. It lists the places of the former, none where a GEMM may be of either.
func sharedIn(ranks ...*Structure) (list []gemmPlace, shared bool) {
	votes, several, passed := map[gemmPlace]int{}, 0, 0
	for n := range slices.MinFunc(ranks, func(a, b *Structure) int { return len(a.tried) - len(b.tried) }).tried {
		times := map[gemmPlace][]float64{}
		for _, s := range ranks {
			for _, layer := range s.of.layers[s.tried[n].from:s.tried[n].to] {
				s.of.gemmsOf(layer, func(g gemmPlace, l *Launch) { times[g] = append(times[g], float64(l.NS)) })
			}
		}
		if len(times) < 3 {
			continue
		}
		longest, routed, stream := 0.0, 0.0, uint16(0) // of routed GEMMs the longest, and its stream
		even, unsure := []gemmPlace(nil), false
		for _, t := range times {
			longest = max(longest, stat.Mean(t, nil))
		}
		for g, t := range times {
			mean, deviation := stat.MeanStdDev(t, nil)
			switch {
			case deviation > leastUneven*mean:
				if mean > routed {
					routed, stream = mean, g.stream
				}
			case mean <= leastTime*longest:
			case deviation < mostSteady*mean:
				even = append(even, g)
			default:
				unsure = true
			}
		}
		if several++; routed == 0 || len(even) == 0 {
			continue
		}
		passed++
		for _, g := range even {
			if !unsure && (g.stream == stream || stat.Mean(times[g], nil) < mostBeside*routed) {
				votes[g]++
			}
		}
	}
	for g, n := range votes {
		if 2*n >= several {
			list = append(list, g)
		}
	}
	return list, passed > 0 && 2*passed >= several
}

// withoutShared finds the structure of ranks without the GEMMs of shared experts, where these take as long on all ranks
// as in all layers. All ranks run them in the same layers, unlike chunks of tokens, and layers have no pieces, which
// may be of microbatches of unlike sizes.
func withoutShared(ranks []*Structure) {
	type place struct {
		layer int
		gemmPlace
	}
	var gemms []*Launch
	list, _ := sharedIn(ranks...)
	places := make([][]place, len(ranks))
	for rank, s := range ranks {
		for n, layer := range s.of.layers {
			s.of.gemmsOf(layer, func(g gemmPlace, l *Launch) {
				if slices.Contains(list, g) {
					places[rank], gemms = append(places[rank], place{n, g}), append(gemms, l)
				}
			})
		}
		if len(list) == 0 || len(s.of.runs) != len(s.of.layers) || !slices.Equal(places[rank], places[0]) {
			return
		}
	}
	for _, l := range gemms {
		l.Anchor = Dense
	}
	for _, s := range ranks {
		*s = Find(s.of.launches)
	}
}
