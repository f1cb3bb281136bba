package steps

import "slices"

// Together finds the steps of ranks whose own marks do not show them, such as a rank without
// requests, that samples nothing: where all recorded as many layers, by the ranks that know theirs, else
// by the marks of all, at one distance or at several that recur. A mark was launched where any rank launched it.
func Together(ranks []*Structure) {
	known := slices.DeleteFunc(slices.Clone(ranks), func(s *Structure) bool { return s.Layers == 0 })
	unlike := func(s *Structure) bool {
		return s.of == nil || s.of.parts == nil || len(s.of.layers) != len(ranks[0].of.layers)
	}
	if len(ranks) < 2 || len(known) == len(ranks) || slices.ContainsFunc(ranks, unlike) {
		return
	}
	first := ranks[0].of
	if len(known) > 0 {
		found := known[0].steps
		if slices.ContainsFunc(known, func(s *Structure) bool { return !slices.Equal(s.steps, found) }) {
			return
		}
		settle(ranks, found)
		return
	}
	list := make([]*recording, len(ranks))
	for i, s := range ranks {
		list[i] = s.of
	}
	if found, _ := first.steps(marksOf(list)); len(found) > 0 {
		settle(ranks, found)
	}
}

// settle gives steps to the ranks that know none.
func settle(ranks []*Structure, steps []stretch) {
	for _, s := range ranks {
		if s.Layers == 0 && !s.of.overlap(steps) {
			s.settle(steps, "")
		}
	}
}
