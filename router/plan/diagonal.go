package plan

import (
	"slices"
	"sync"

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
		return groupDiagonal(p.Shape, ranks), cells
	}
	if byRank := cellsOf(p.Shape, p.Layout, false); fits(p, byRank) {
		return func(t, s, j int) int { return (s + t*k + j) % ranks }, byRank
	}
	return nil, cells
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

// Table is the balanced plan of a shape on a layout, for any number of tokens: row
// t holds the experts of token t of every source, and token t of more tokens than
// there are rows is row t mod Rows. A source is a rank in dep mode; in tep mode,
// where all ranks hold the same tokens, there is one.
//
// The slots of a step, one token of each source, are assigned in three stages:
//
//   - Cells. A cell is what one rank holds of one group: a rank where there are no
//     groups. Each source takes the cells of a diagonal (see diagonal), so that
//     sources in the same step send to different ranks. Where no diagonal keeps to
//     the groups, or experts have replicas, each slot takes the cell whose rank has
//     the fewest slots so far (see leastLoaded).
//   - Experts. A cell gives every one of its experts a slot before any gets the
//     next, so at any time the experts of a cell differ by at most one.
//   - Sources. Of the experts whose turn it is a source takes the one that it has
//     used least; sources choose in an order that turns with the steps.
//
// The sums over all sources therefore are level after every step, whatever the
// number of tokens, as long as cells are. They are exactly equal every Period
// steps, and Rows is a multiple of that: what holds for T ≤ Rows tokens holds for
// all (see Prove).
//
// Rows are made when they are first asked for; a Table serves several goroutines.
type Table struct {
	sources, topK int
	rows, period  int

	mu   sync.Mutex
	next *assigner
	ids  []int32 // of the rows made so far, by row, source and slot
}

// Tables have as many rows as the least multiple of the period from tableRows on:
// more of them use the experts of one source more evenly. Without a period up to
// mostPeriod they have that many, or tableRows where cells are no diagonal's.
const (
	tableRows  = 256
	mostPeriod = 4096
)

// NewTable makes the table of a valid problem, whose tokens and layer do not matter.
func NewTable(p Problem) *Table {
	t := &Table{sources: len(p.sources()), topK: p.Shape.TopK, rows: tableRows, next: newAssigner(p)}
	if t.next.diagonal != nil {
		t.period, t.rows = newAssigner(p).period(), mostPeriod
		if t.period > 0 {
			t.rows = (tableRows + t.period - 1) / t.period * t.period
		}
	}
	return t
}

// Rows is the number of rows after which the table begins again.
func (t *Table) Rows() int { return t.rows }

// Period is a number of steps after which all ranks, experts and targets of each
// source are level: a table may start at any multiple of it, and be cut at one. It
// is 0 if none is known.
func (t *Table) Period() int { return t.period }

// Fill writes the experts of as many tokens of a source as dst has room for, from
// row `from` on, row-major.
func (t *Table) Fill(dst []int32, source, from int) {
	ids := t.first(min(t.rows, from+len(dst)/t.topK))
	for row := from; len(dst) > 0; row++ {
		at := (row%t.rows*t.sources + source) * t.topK
		dst = dst[copy(dst, ids[at:at+t.topK]):]
	}
}

// first are the first rows.
func (t *Table) first(rows int) []int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	width := t.sources * t.topK
	t.ids = slices.Grow(t.ids, max(0, rows*width-len(t.ids)))
	for len(t.ids) < rows*width {
		t.ids = append(t.ids, t.next.step(len(t.ids)/width)...)
	}
	return t.ids
}

// diagonalPlan is the table for a problem: a source takes as many rows as it has
// tokens, from row layer·Period on.
type diagonalPlan struct {
	problem Problem
	table   *Table
}

// Name is "diagonal/2".
func (d *diagonalPlan) Name() string { return "diagonal/2" }

func (d *diagonalPlan) Rows() int   { return d.table.rows }
func (d *diagonalPlan) Period() int { return d.table.period }

func (d *diagonalPlan) Fill(dst []int32, rank int) {
	d.table.Fill(dst, d.problem.source(rank), d.problem.Layer*d.table.period%d.table.rows)
}

// cell is a set of experts that share a rank and a group. An expert with replicas
// is a cell of its own, whose slots go to its copies in turn.
type cell struct {
	experts []int32
	group   int
	ranks   []int32 // of the copies, in the order of their turns; one but for replicas
	slots   int     // so far
}

// rank is the one that the cell's next slot lands on.
func (c *cell) rank() int32 { return c.ranks[c.slots%len(c.ranks)] }

// copies is how many copies of experts the cell has.
func (c *cell) copies() int { return len(c.experts) * len(c.ranks) }

// idle is 0 if some expert of the cell has no slot, otherwise 1.
func (c *cell) idle() int { return min(1, c.slots/len(c.experts)) }

// cellsOf are the cells of a layout, in the order of their first experts; where
// groups do not matter, those of a rank are one.
func cellsOf(s router.Shape, l router.Layout, groups bool) (cells []cell) {
	known := map[[2]int]int{} // by group and rank
	for e := range s.Experts {
		group, places := 0, l.Places(e)
		if groups {
			group = e / s.GroupSize()
		}
		at := [2]int{group, places[0].Rank}
		if i, ok := known[at]; ok && len(places) == 1 {
			cells[i].experts = append(cells[i].experts, int32(e))
			continue
		}
		c := cell{experts: []int32{int32(e)}, group: group}
		for _, p := range places {
			c.ranks = append(c.ranks, int32(p.Rank))
		}
		if len(places) == 1 {
			known[at] = len(cells)
		}
		cells = append(cells, c)
	}
	return cells
}
