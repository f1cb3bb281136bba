package plan

import (
	"slices"
	"sync"
)

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
	t := &Table{sources: len(p.Sources()), topK: p.Shape.TopK, rows: tableRows, next: newAssigner(p)}
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

// Extent is one table for all layers.
func (d *diagonalPlan) Extent() Extent { return Extent{d.table.rows, d.table.period, 1} }

func (d *diagonalPlan) Fill(dst []int32, rank int) {
	d.table.Fill(dst, d.problem.source(rank), d.problem.Layer*d.table.period%d.table.rows)
}
