package capture

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/moebalance/moebalance/compare/capture/rows"
)

// correlationIndex finds what ran because of a call: the executions by (process,
// correlation id). The pair is the key; a correlation id alone repeats in every
// process of the capture.
type correlationIndex struct {
	byProcess map[int32]*processCorrelations
	noPIDs    bool // the export records no process: everything is one
	pairs     int
	launches  []Launch // by pair, see launchReader.add
}

// processCorrelations are the distinct ids of one process, with an index that finds
// most of them in one step whatever their spacing: blocks[b] is the position of
// the first id whose distance from ids[0], shifted right, is at least b.
type processCorrelations struct {
	ids    []int64 // ascending
	blocks []int32
	shift  uint
	first  int32 // the number of ids[0] among all processes' ids
}

// newCorrelationIndex numbers the distinct pairs of everything that ran. The ids of a
// process mostly come in order, so that sorting them costs one look.
func newCorrelationIndex(a *activityReader) *correlationIndex {
	l := &correlationIndex{byProcess: map[int32]*processCorrelations{}, noPIDs: a.noPIDs}
	count := make([]int, len(a.processes.values))
	a.eachPair(func(process int32, _ int64) { count[process]++ })
	lists := make([][]int64, len(count))
	for p, n := range count {
		lists[p] = make([]int64, 0, n)
	}
	a.eachPair(func(process int32, id int64) { lists[process] = append(lists[process], id) })
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
func (a *activityReader) eachPair(visit func(process int32, id int64)) {
	see := func(d int32, id int64) {
		if id != noCorrelation {
			visit(a.devices.values[d].Process, id)
		}
	}
	for i := range a.kernels {
		see(a.kernels[i].Device, a.correlations.id(a.kernels[i].Launch))
	}
	for _, g := range a.graphs {
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

// readLaunches reads the table of API calls in two halves at once.
func readLaunches(ctx context.Context, db *database, index *correlationIndex, processes map[int64]int32,
	strings *stringLookup) ([]*launchReader, error) {
	if !db.has(callTable, "correlationId", "globalTid", "start", "end") {
		return nil, nil
	}
	index.launches = make([]Launch, index.pairs)
	half := func(number int32, of rows.RowRange) *launchReader {
		return &launchReader{number: number, db: db, index: index, processes: processes, strings: strings,
			names: map[int64]callKind{}, rows: of, seen: newIDs(), threads: newIDs(), issues: Issues{}}
	}
	left, right := rows.Halves(db.lastRow[callTable])
	halves := []*launchReader{half(0, left), half(1, right)}
	return halves, db.each(ctx, halves[0].read, halves[1].read)
}

// launchReader reads one range of the table of API calls and keeps those that
// launched something.
type launchReader struct {
	number    int32 // among the readers of one capture
	db        *database
	index     *correlationIndex
	processes map[int64]int32
	strings   *stringLookup
	names     map[int64]callKind // by id
	rows      rows.RowRange
	seen      *denseIDs[int64]
	callers   []caller // by number in seen
	threads   *denseIDs[int64]
	again     []laterLaunch
	calls     int64
	lost      int64 // launches without a kernel, of a source without callers
	issues    Issues
}

// laterLaunch is one whose pair has a launch already.
type laterLaunch struct {
	Launch
	pair int32
}

// add keeps the launch of a pair in its place, with its thread's number plus 1, and the
// reader's in place of the operator. The readers of a capture share the places.
func (r *launchReader) add(pair int32, l Launch) {
	at := &r.index.launches[pair]
	l.Thread, l.Operator = l.Thread+1, r.number
	if !atomic.CompareAndSwapInt32(&at.Thread, 0, l.Thread) {
		r.again = append(r.again, laterLaunch{l, pair})
		return
	}
	at.Start, at.End, at.Operator = l.Start, l.End, l.Operator
}

// caller is a thread with calls.
type caller struct {
	ran    *processCorrelations // what ran in its process, nil for nothing
	thread int32                // its number in threads, −1 before its first launch
	lost   int64                // launches without a kernel
	before int64                // of these, the ones before the capture of a graph that is not ended
	inside bool                 // in such a capture
}

// callKind is what a call that no execution belongs to says of lost kernels.
type callKind uint8

const (
	otherCall callKind = iota
	kernelCall
	beginCapture
	endCapture
)

func callKindOf(name string) callKind {
	switch {
	case strings.HasPrefix(name, "cudaStreamBeginCapture"), strings.HasPrefix(name, "cuStreamBeginCapture"):
		return beginCapture
	case strings.HasPrefix(name, "cudaStreamEndCapture"), strings.HasPrefix(name, "cuStreamEndCapture"):
		return endCapture
	case strings.HasPrefix(name, "cudaLaunchKernel"), strings.HasPrefix(name, "cudaLaunchCooperativeKernel"),
		strings.HasPrefix(name, "cuLaunchKernel"), strings.HasPrefix(name, "cuLaunchCooperativeKernel"):
		return kernelCall
	}
	return otherCall
}

// withoutWork counts a successful call that no execution belongs to. A launch while a
// graph is captured makes a node and no kernel; the second half of the table may
// begin inside such a capture.
func (c *caller) withoutWork(kind callKind) {
	switch kind {
	case kernelCall:
		c.lost++
	case beginCapture:
		c.before, c.inside = c.lost, true
	case endCapture:
		c.lost, c.before, c.inside = c.before, 0, false
	}
}

// lostKernels are the launches whose kernel is not recorded.
func (r *launchReader) lostKernels() (n int64) {
	for _, c := range r.callers {
		if c.inside {
			n += c.before
		} else {
			n += c.lost
		}
	}
	return n + r.lost
}

func (r *launchReader) read(ctx context.Context) error {
	q := rows.Query{Table: callTable, Integers: []string{"correlationId", "globalTid", "start", "end", "nameId",
		"returnValue"}, Rows: r.rows}
	return r.db.stream(ctx, q, func(row *rows.Row) error {
		r.calls++
		tid := row.Int(1)
		by := r.caller(tid)
		if by.ran == nil {
			return nil
		}
		pair := by.ran.find(row.Int(0))
		if pair < 0 || row.Null(0) {
			if row.Int(5) == 0 {
				kind, err := r.kind(row.Int(4))
				by.withoutWork(kind)
				return err
			}
			return nil
		}
		l := Launch{Start: row.Int(2), End: row.Int(3)}
		if !r.issues.believable(l.Start, l.End) {
			return nil
		}
		if by.thread < 0 {
			by.thread = r.threads.of(tid)
		}
		l.Thread = by.thread
		r.add(pair, l)
		return nil
	})
}

// kind looks a call's name up, once for every name.
func (r *launchReader) kind(name int64) (callKind, error) {
	kind, known := r.names[name]
	if !known {
		text, err := r.strings.find(name)
		if err != nil {
			return otherCall, err
		}
		kind = callKindOf(text)
		r.names[name] = kind
	}
	return kind, nil
}

// caller looks a thread up, and on its first call what ran in its process.
func (r *launchReader) caller(tid int64) *caller {
	i := int(r.seen.of(tid))
	if i == len(r.callers) {
		c := caller{thread: -1}
		if p, ok := r.processes[tid&processMask]; ok || r.index.noPIDs {
			c.ran = r.index.byProcess[p]
		}
		r.callers = append(r.callers, c)
	}
	return &r.callers[i]
}
