package capture

import (
	"context"
	"slices"

	"zombiezen.com/go/sqlite"

	"github.com/moebalance/moebalance/compare/nsys/capture/rows"
)

// launched finds who ran because of a call: the executions by (process,
// correlation id). The pair is the key; a correlation id alone repeats in every
// process of the capture.
type correlationIndex struct {
	byProcess map[int32]*processCorrelations
	bare      bool // the export records no process: everything is one
	pairs     int
}

// correlations are the distinct ids of one process, with an index that finds
// most of them in one step whatever their spacing: blocks[b] is the position of
// the first id whose distance from ids[0], shifted right, is at least b.
type processCorrelations struct {
	ids    []int64 // ascending
	blocks []int32
	shift  uint
	first  int32 // the number of ids[0] among all processes' ids
}

// newLaunched numbers the distinct pairs of everything that ran. The ids of a
// process mostly come in order, so that sorting them costs one look.
func newLaunched(w *workReader) *correlationIndex {
	l := &correlationIndex{byProcess: map[int32]*processCorrelations{}, bare: w.trouble.NoPIDs}
	count := make([]int, len(w.processes.values))
	w.eachPair(func(process int32, _ int64) { count[process]++ })
	lists := make([][]int64, len(count))
	for p, n := range count {
		lists[p] = make([]int64, 0, n)
	}
	w.eachPair(func(process int32, id int64) { lists[process] = append(lists[process], id) })
	for p, ids := range lists {
		if len(ids) == 0 {
			continue
		}
		c := &processCorrelations{ids: ids}
		l.byProcess[int32(p)] = c
		if !slices.IsSorted(c.ids) {
			slices.Sort(c.ids)
		}
		c.ids = slices.Compact(c.ids)
		c.first = int32(l.pairs)
		l.pairs += len(c.ids)
		c.index()
	}
	return l
}

// eachPair visits the process and correlation id of everything that ran.
func (w *workReader) eachPair(visit func(process int32, id int64)) {
	see := func(u int32, id int64) {
		if id != noCorrelation {
			visit(w.units.values[u].Process, id)
		}
	}
	for _, list := range [][]Kernel{w.kernels, w.moves} {
		for i := range list {
			see(list[i].Device, list[i].Correlation)
		}
	}
	for _, g := range w.runs {
		see(g.Device, g.Correlation)
	}
}

// find is the number of a pair, −1 when nothing ran under it.
func (l *correlationIndex) find(process int32, id int64) int32 {
	c := l.byProcess[process]
	if c == nil {
		return -1
	}
	return c.find(id)
}

// index fills blocks, at most two for each id.
func (c *processCorrelations) index() {
	width := uint64(c.ids[len(c.ids)-1]) - uint64(c.ids[0])
	for width>>c.shift >= uint64(2*len(c.ids)) {
		c.shift++
	}
	c.blocks = make([]int32, width>>c.shift+2)
	for _, id := range c.ids {
		c.blocks[c.block(id)+1]++
	}
	for b := 1; b < len(c.blocks); b++ {
		c.blocks[b] += c.blocks[b-1]
	}
}

func (c *processCorrelations) block(id int64) uint64 {
	return (uint64(id) - uint64(c.ids[0])) >> c.shift
}

// find is the number of the pair of this process with the id, −1 when nothing
// ran under it.
func (c *processCorrelations) find(id int64) int32 {
	b := c.block(id)
	if b >= uint64(len(c.blocks)-1) {
		return -1
	}
	from, to := c.blocks[b], c.blocks[b+1]
	i, ok := slices.BinarySearch(c.ids[from:to], id)
	if !ok {
		return -1
	}
	return c.first + from + int32(i)
}

// readCalls reads the table of API calls in two halves at once.
func readCalls(ctx context.Context, db *database, l *correlationIndex, processes map[int64]int32) ([]*callReader, error) {
	if !db.has(callTable, "correlationId", "globalTid", "start", "end") {
		return nil, nil
	}
	part := func(of rows.Stretch) *callReader {
		return &callReader{db: db, launched: l, processes: processes, rows: of, seen: newIDs(), threads: newIDs()}
	}
	left, right := rows.Halves(db.lastRow[callTable])
	parts := []*callReader{part(left), part(right)}
	return parts, db.each(ctx, parts[0].read, parts[1].read)
}

// callReader reads one stretch of the table of API calls and keeps those that
// launched something.
type callReader struct {
	db        *database
	launched  *correlationIndex
	processes map[int64]int32
	rows      rows.Stretch
	seen      *numbering[int64]
	callers   []caller // by number in seen
	threads   *numbering[int64]
	hits      []hit
	count     int64
	trouble   Issues
}

// caller is a thread with calls.
type caller struct {
	launched *processCorrelations // what ran in its process, nil for nothing
	thread   int32                // its number in threads, −1 before its first hit
}

// hit is a call and the number of the pair it launched.
type hit struct {
	Launch
	pair int32
}

func (r *callReader) read(ctx context.Context, conn *sqlite.Conn) error {
	r.hits = make([]hit, 0, r.launched.pairs/2+r.launched.pairs/16)
	q := rows.Query{Table: callTable, Integers: []string{"correlationId", "globalTid", "start", "end"}, Rows: r.rows}
	return r.db.stream(ctx, conn, q, func(row *rows.Row) error {
		r.count++
		tid := row.Int(1)
		by := r.caller(tid)
		if by.launched == nil {
			return nil
		}
		pair := by.launched.find(row.Int(0))
		if pair < 0 || row.Null(0) {
			return nil
		}
		c := Launch{Start: row.Int(2), End: row.Int(3)}
		if !r.trouble.believable(c.Start, c.End) {
			return nil
		}
		if by.thread < 0 {
			by.thread = r.threads.of(tid)
		}
		c.Thread = by.thread
		r.hits = append(r.hits, hit{c, pair})
		return nil
	})
}

// caller looks a thread up, and on its first call what ran in its process.
func (r *callReader) caller(tid int64) *caller {
	i := int(r.seen.of(tid))
	if i == len(r.callers) {
		c := caller{thread: -1}
		if p, ok := r.processes[tid&processMask]; ok || r.launched.bare {
			c.launched = r.launched.byProcess[p]
		}
		r.callers = append(r.callers, c)
	}
	return &r.callers[i]
}
