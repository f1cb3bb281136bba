package imbalance

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// kindFactor is the largest ratio of tokens between two steps of one kind; where tokens are not known, of time outside
// the experts. Steps of 4,096 and 8,192 tokens are of one kind, steps of 4,095 and 8,192 are not.
const kindFactor = 2

// Classify numbers the kinds of the whole steps, in order of their first step; times of steps of different kinds are
// not averaged. Steps are of different kinds if they differ in what they do: the kernels that did the work of experts,
// and what ranges call the step; or in their number of tokens, 0 where not known. The same times are given with the
// steps of one kind that count, see OfKind.
func (t *Times) Classify(work func(step router.OptInt) (what string, tokens int)) *Times {
	alike, tokens := map[string][]*Step{}, map[*Step]float64{}
	for i := range t.Steps {
		if s := &t.Steps[i]; s.whole() && s.Number.Defined() {
			what, n := work(s.Number)
			alike[what], tokens[s] = append(alike[what], s), float64(n)
		}
	}
	largest := map[*Step]*Step{} // of its kind, which stands for it
	for _, list := range alike {
		size := func(s *Step) float64 { return tokens[s] }
		if slices.ContainsFunc(list, func(s *Step) bool { return tokens[s] == 0 }) {
			size = func(s *Step) float64 { return s.outsideNS }
		}
		slices.SortStableFunc(list, func(a, b *Step) int { return cmp.Compare(size(b), size(a)) })
		top := list[0]
		for _, s := range list {
			if kindFactor*size(s) < size(top) {
				top = s
			}
			largest[s] = top
		}
	}
	number := map[*Step]router.OptInt{}
	for i := range t.Steps {
		if top := largest[&t.Steps[i]]; top != nil {
			if _, known := number[top]; !known {
				number[top] = router.OptInt(len(number))
			}
			t.Steps[i].Kind = number[top]
		}
	}
	return t.OfKind(router.NoID)
}
