package plan

import (
	"slices"

	"github.com/moebalance/moebalance/router"
)

// diagonal is the cell of slot j of token t of source s. Different sources have
// different ranks in the same slot of the same token, and any tokens in a row visit
// all cells equally often, as far as whole numbers allow.
type diagonal func(t, s, j int) int

// diagonalOf is the diagonal of a problem, and its cells; nil where none keeps to
// groups and distinct experts.
func diagonalOf(p Problem) (diagonal, []cell) {
	ranks, k, groups := p.Layout.Ranks(), p.Shape.TopK, p.Shape.Groups
	cells := cellsOf(p.Shape, p.Layout, true)
	_, equal := p.Layout.PerRank()
	if equal && p.Shape.Grouped() && (ranks%groups == 0 || groups%ranks == 0) {
		if d := groupDiagonal(p.Shape, ranks); d.lasts(len(p.sources()), k, max(ranks, groups), len(cells)) {
			return d, cells
		}
		return nil, cells
	}
	if byRank := cellsOf(p.Shape, p.Layout, false); fits(p, byRank) {
		return func(t, s, j int) int { return (s + t*k + j) % ranks }, byRank
	}
	return nil, cells
}

// lasts reports that cells get equally many slots over the steps after which the diagonal repeats. Of 3 slots of each
// token in 2 groups the first group would get 2 for ever, where one source sends all.
func (d diagonal) lasts(sources, k, steps, cells int) bool {
	slots := make([]int, cells)
	for i := range steps * sources * k {
		slots[d(i/k/sources, i/k%sources, i%k)]++
	}
	return slices.Min(slots) == slices.Max(slots)
}

// groupDiagonal is the diagonal where groups lie on whole ranks or ranks hold whole
// groups. A token visits w = min(tg, k) groups, and slot j is visit m = w·t + (j mod w).
// If groups lie on several ranks each, m counts groups, and ranks within a group;
// otherwise it counts ranks, and groups within a rank.
func groupDiagonal(s router.Shape, ranks int) diagonal {
	groups, w := s.Groups, visitsPerToken(s)
	if ranks < groups {
		inner := groups / ranks
		return func(t, s, j int) int {
			m := w*t + j%w
			return (s+m)%ranks*inner + m/ranks%inner
		}
	}
	inner, perGroup := ranks/groups, (s.TopK+w-1)/w
	return func(t, s, j int) int {
		m := w*t + j%w
		return (s+m)%groups*inner + (s/groups+j/w+perGroup*(m/groups))%inner
	}
}

// fits reports whether tokens may take k ranks in a row: one copy of every expert,
// as many experts on every rank as a token takes there, and few groups on as many
// ranks in a row as a token visits.
func fits(p Problem, cells []cell) bool {
	ranks, k := p.Layout.Ranks(), p.Shape.TopK
	share := (k + ranks - 1) / ranks
	if p.Layout.Replicated() || len(cells) != ranks ||
		slices.ContainsFunc(cells, func(c cell) bool { return len(c.experts) < share }) {
		return false
	}
	if !p.Shape.Grouped() {
		return true
	}
	for first := range ranks {
		met := map[int]bool{}
		for i := range min(k, ranks) {
			for _, e := range cells[(first+i)%ranks].experts {
				met[int(e)/p.Shape.GroupSize()] = true
			}
		}
		if len(met) > p.Shape.TopKGroups {
			return false
		}
	}
	return true
}

// visitsPerToken is how many different groups a token can use: all it may that it
// has slots for.
func visitsPerToken(s router.Shape) int { return min(s.GroupLimit(), s.TopK) }
