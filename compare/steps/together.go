package steps

import "slices"

// Together finds the steps of ranks whose own launches do not show them: a rank without requests samples nothing, one
// without tokens for its experts runs none, and busy ranks run more pieces of a layer. Where all recorded as many
// layers, or all ran the same collectives, the marks of all tell, at one distance or at several that recur.
func Together(ranks []*Structure) {
	known := func() bool {
		return !slices.ContainsFunc(ranks, func(s *Structure) bool {
			return s.Layers == 0 || len(s.Blocks) != len(ranks[0].Blocks)
		})
	}
	withoutShared(ranks)
	var own []*recording
	for _, s := range ranks {
		own = append(own, s.of)
	}
	if len(ranks) > 1 && !known() {
		settle(ranks, own)
	}
	if len(ranks) > 1 && !known() {
		settle(ranks, align(own))
	}
}

// settle gives ranks the steps that the marks of all of them show: a mark was launched where any rank launched it.
// Ranks whose own marks show other steps are not joined by these: their layers would be numbered otherwise.
func settle(ranks []*Structure, list []*recording) {
	if slices.ContainsFunc(list, func(r *recording) bool {
		return r.parts == nil || len(r.layers) != len(list[0].layers)
	}) || len(list) == 0 {
		return
	}
	found, _ := list[0].steps(marksOf(list))
	settled := make([]Structure, len(ranks))
	for i, r := range list {
		s := Structure{Blocks: r.layers, of: r}
		s.settle(found, "")
		if s.Layers == 0 || ranks[i].Layers > 0 && ranks[i].of == r && !slices.Equal(ranks[i].steps, found) ||
			!slices.Equal(r.collectives(), list[0].collectives()) { // ranks skip layers of their own
			return
		}
		settled[i] = s
	}
	for i, s := range ranks {
		*s = settled[i]
	}
}

// collectives are how many stand before each layer, behind the layer before.
func (r *recording) collectives() (n []int) {
	n = make([]int, len(r.layers))
	for i := range r.layers {
		for _, l := range r.segment(i) {
			if l.Anchor == Collective {
				n[i]++
			}
		}
	}
	return n
}

// align gives ranks that ran the same collectives the same blocks: between two collectives, where any rank ran
// experts, each has one block, which is empty where it ran none. Of ranks that ran others, or equally many GEMMs
// between them, it gives none.
func align(ranks []*recording) (aligned []*recording) {
	gaps, equal := map[int]bool{}, true // the number of collectives before
	var names, gemms [2][]int32         // of the first rank and another: collectives, and the gap of each GEMM
	for i, r := range ranks {
		of := min(i, 1)
		names[of], gemms[of] = nil, nil
		for _, l := range r.launches {
			switch n := len(names[of]); l.Anchor {
			case ExpertGEMM:
				gemms[of] = append(gemms[of], int32(n))
				gaps[n] = true
			case Collective:
				names[of] = append(names[of], l.Name)
			}
		}
		if !slices.Equal(names[of], names[0]) {
			return nil
		}
		equal = equal && slices.Equal(gemms[of], gemms[0])
	}
	for _, r := range ranks {
		a, n, runs := &recording{launches: r.launches, chunks: true}, 0, r.runs
		for at, l := range a.launches {
			if l.Anchor != Collective {
				continue
			}
			if gaps[n] {
				b := Block{at, at - 1}
				for ; len(runs) > 0 && runs[0].First < at; runs = runs[1:] {
					b = Block{min(b.First, runs[0].First), runs[0].Last}
				}
				a.runs = append(a.runs, b)
			}
			n++
		}
		if aligned = append(aligned, a); equal || a.join() != "" || !slices.Equal(a.parts, aligned[0].parts) {
			return nil
		}
	}
	return aligned
}
