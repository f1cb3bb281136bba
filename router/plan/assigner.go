package plan

import (
	"math"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// assigner assigns the slots of one step after the other; see table.
type assigner struct {
	shape    router.Shape
	sources  int
	cells    []cell
	diagonal diagonal // nil if no diagonal fits
	load     []int    // by rank: slots
	sent     [][]int  // by source and rank: slots
	expert   []int    // by expert: slots
	used     [][]int  // by source and expert: slots
	chosen   []int32  // by source and slot of the step: cells
	ids      []int32  // by source and slot of the step: experts
}

func newAssigner(p Problem) *assigner {
	k := p.Shape.TopK
	a := &assigner{
		shape: p.Shape, sources: len(p.sources()),
		load: make([]int, p.Layout.Ranks()), expert: make([]int, p.Shape.Experts),
	}
	a.diagonal, a.cells = diagonalOf(p)
	a.sent, a.used = matrix[int](a.sources, len(a.load)), matrix[int](a.sources, p.Shape.Experts)
	a.chosen, a.ids = make([]int32, a.sources*k), make([]int32, a.sources*k)
	return a
}

func matrix[T any](rows, columns int) [][]T {
	m := make([][]T, rows)
	for i := range m {
		m[i] = make([]T, columns)
	}
	return m
}

// step assigns one token of every source and returns the experts by source and
// slot, which are valid until the next step.
func (a *assigner) step(t int) []int32 {
	a.choose(t)
	for i := range a.sources {
		a.assign((i + t) % a.sources)
	}
	return a.ids
}

// choose chooses the cells of all slots of a step, and counts the slots of ranks.
func (a *assigner) choose(t int) {
	if a.diagonal == nil {
		a.leastLoaded(t)
		return
	}
	for s := range a.sources {
		for j := range a.shape.TopK {
			a.take(s, j, a.diagonal(t, s, j))
		}
	}
}

// take chooses a cell for a slot.
func (a *assigner) take(s, j, cell int) {
	c := &a.cells[cell]
	a.chosen[s*a.shape.TopK+j] = int32(cell)
	a.load[c.rank()]++
	a.sent[s][c.rank()]++
	c.slots++
}

// assign gives a source the experts of the cells chosen for its token: of each cell
// those with the fewest slots, of these the ones that the source has used least. Of
// equal ones it takes the first from where the present round begins, each round one
// expert further on, so that a source does not get the same ones in every round.
func (a *assigner) assign(s int) {
	k := a.shape.TopK
	token, used := a.ids[s*k:(s+1)*k], a.used[s]
	for j, i := range a.chosen[s*k : (s+1)*k] {
		c := &a.cells[i]
		from := c.slots / len(c.experts)
		best, fewest := int32(-1), math.MaxInt
		for turn := range c.experts {
			e := c.experts[(from+turn)%len(c.experts)]
			if n := a.expert[e]<<32 | used[e]; n < fewest && !slices.Contains(token[:j], e) {
				best, fewest = e, n
			}
		}
		token[j] = best
		a.expert[best]++
		used[best]++
	}
}

// period is the number of steps after which the diagonal is level, 0 if it is not
// up to mostPeriod.
func (a *assigner) period() int {
	for t := range mostPeriod {
		if a.choose(t); a.level() {
			return t + 1
		}
	}
	return 0
}

// level reports whether all ranks have equally many slots, all experts of a cell
// can have, and every source has sent equally many to all ranks.
func (a *assigner) level() bool {
	for i := range a.cells {
		if c := &a.cells[i]; c.slots%c.copies() != 0 {
			return false
		}
	}
	for _, sent := range append([][]int{a.load}, a.sent...) {
		if slices.Min(sent) != slices.Max(sent) {
			return false
		}
	}
	return true
}
