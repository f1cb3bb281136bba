package steps

import "slices"

// Together finds the steps of ranks whose own marks do not show them, such as a rank without
// requests, that samples nothing: where all recorded as many layers, by the ranks that know theirs, else
// by the marks of all. A mark was launched where any rank launched it.
func Together(ranks []*Structure) {
	known := slices.DeleteFunc(slices.Clone(ranks), func(s *Structure) bool { return s.Layers == 0 })
	unlike := func(s *Structure) bool {
		return s.of == nil || s.of.parts == nil || len(s.of.layers) != len(ranks[0].of.layers)
	}
	if len(ranks) < 2 || len(known) == len(ranks) || slices.ContainsFunc(ranks, unlike) {
		return
	}
	var p period
	switch first := ranks[0].of; {
	case len(known) > 0:
		p = known[0].period()
		if slices.ContainsFunc(known, func(s *Structure) bool { return s.period() != p }) {
			return
		}
	default:
		list := make([]*recording, len(ranks))
		for i, s := range ranks {
			list[i] = s.of
		}
		var unknown string
		if p, unknown = first.period(marksOf(list)); unknown != "" {
			return
		}
	}
	for _, s := range ranks {
		if s.Layers == 0 && !s.of.overlap(p) {
			s.settle(p)
		}
	}
}

// period is the way in which a structure cuts layers into steps.
func (s *Structure) period() period {
	return period{s.Layers, (s.Layers - s.FirstLayer) % s.Layers}
}
