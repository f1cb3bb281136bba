package plan

import (
	"cmp"
	"slices"
)

// table is the balanced plan of a shape on a layout, for any number of tokens: row
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
// all (see prove).
type table struct {
	sources, topK int
	rows, period  int
	ids           []int32 // of the rows that are made, by row, source and slot
}

// Tables have as many rows as the least multiple of the period from tableRows on:
// more of them use the experts of one source more evenly. Without a period up to
// mostPeriod they have that many, or tableRows where cells are no diagonal's.
const (
	tableRows  = 256
	mostPeriod = 4096
)

// newTable makes the table of a valid problem, with as many rows as its tokens take, and all rows for none.
func newTable(p Problem) *table {
	t, a := &table{sources: len(p.sources()), topK: p.Shape.TopK, rows: tableRows}, newAssigner(p)
	if a.diagonal != nil {
		t.period, t.rows = newAssigner(p).period(), mostPeriod
		if t.period > 0 {
			t.rows = (tableRows + t.period - 1) / t.period * t.period
		}
	}
	for row := range min(t.rows, cmp.Or(slices.Max(p.Tokens), t.rows)) {
		t.ids = append(t.ids, a.step(row)...)
	}
	return t
}

// fill writes the experts of as many tokens of a source as dst has room for, from
// row `from` on, row-major.
func (t *table) fill(dst []int32, source, from int) {
	for row := from; len(dst) > 0; row++ {
		at := (row%t.rows*t.sources + source) * t.topK
		dst = dst[copy(dst, t.ids[at:at+t.topK]):]
	}
}

// plan is the table as a plan, one for all layers.
func (t *table) plan(p Problem) Plan {
	return Plan{Name: "diagonal/2", Extent: Extent{t.rows, t.period, 1}, Fill: func(dst []int32, rank int) {
		t.fill(dst, p.source(rank), 0)
	}}
}
