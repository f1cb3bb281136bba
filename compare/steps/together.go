package steps

import "slices"

// Together finds the steps of ranks whose own marks do not show them, such as a rank without
// requests, that samples nothing: where all recorded as many layers, by the marks of all, at one distance or at several
// that recur. A mark was launched where any rank launched it. Ranks whose own marks show other steps are not joined by
// these: their layers would be numbered otherwise.
func Together(ranks []*Structure) {
	list := make([]*recording, len(ranks))
	for i, s := range ranks {
		if s.of == nil || s.of.parts == nil || len(s.of.layers) != len(ranks[0].of.layers) {
			return
		}
		list[i] = s.of
	}
	unknown := func(s *Structure) bool { return s.Layers == 0 }
	if len(ranks) < 2 || !slices.ContainsFunc(ranks, unknown) {
		return
	}
	found, _ := list[0].steps(marksOf(list))
	if slices.ContainsFunc(ranks, func(s *Structure) bool { return !unknown(s) && !slices.Equal(s.steps, found) }) {
		return
	}
	for _, s := range ranks {
		if len(found) > 0 && !s.of.overlap(found) { // ranks that know their steps have these
			s.settle(found, "")
		}
	}
}
