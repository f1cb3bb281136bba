package nsys

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"zombiezen.com/go/sqlite"
)

// The tables of events. Every one is optional in an export.
const (
	kernelTable  = "CUPTI_ACTIVITY_KIND_KERNEL"
	callTable    = "CUPTI_ACTIVITY_KIND_RUNTIME"
	copyTable    = "CUPTI_ACTIVITY_KIND_MEMCPY"
	fillTable    = "CUPTI_ACTIVITY_KIND_MEMSET"
	graphTable   = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
	nodeTable    = "CUDA_GRAPH_NODE_EVENTS"
	rangeTable   = "NVTX_EVENTS"
	stringTable  = "StringIds"
	sessionTable = "TARGET_INFO_SESSION_START_TIME"
)

// processMask takes the process out of a serialized thread id, whose 64 bits
// are hardware 8, virtual machine 8, process 24, thread 24.
const processMask = ^int64(0xFFFFFF)

// pidOf is the process's number in its operating system.
func pidOf(globalPid int64) int64 { return globalPid >> 24 & 0xFFFFFF }

// tidOf is the thread's number in its operating system.
func tidOf(globalTid int64) int64 { return globalTid & 0xFFFFFF }

// depth says how much of an export a question needs.
type depth int

const (
	forAnalysis   depth = iota // kernels, and names without what makes each instance unique
	forStatistics              // copies and fills too, and names as recorded
)

// trouble counts the rows that could not be used as they are.
type trouble struct {
	backwards  int64 // events that end before they begin, left out
	outOfRange int64 // events beyond timeLimit, left out
	openRanges int64 // ranges never closed, taken to last to the capture's end
	reused     int64 // calls with the correlation id of another call
	bare       bool  // no process beside the correlation id
}

func (t *trouble) add(o trouble) {
	t.backwards += o.backwards
	t.outOfRange += o.outOfRange
	t.openRanges += o.openRanges
	t.reused += o.reused
	t.bare = t.bare || o.bare
}

// believable reports whether an event's times can be used, and counts it if not.
func (t *trouble) believable(start, end int64) bool {
	if start < -timeLimit || start > timeLimit || end < -timeLimit || end > timeLimit {
		t.outOfRange++
		return false
	}
	if end < start {
		t.backwards++
		return false
	}
	return true
}

// read streams every table of an export once into a recording: what ran on the
// GPU beside the ranges, then the API calls in two halves.
func read(ctx context.Context, db *database, how depth) (*recording, error) {
	work := &workReader{db: db, how: how, names: newNumbering[int64](), processes: newNumbering[int64](), units: newNumbering[unit](), threads: newNumbering[int64]()}
	ranges := &rangeReader{db: db, how: how, texts: newInterner(), ids: newNumbering[int64](), threads: newNumbering[int64](), domains: newDomains()}
	if err := db.each(ctx, work.read, ranges.read); err != nil {
		return nil, err
	}
	launched := newLaunched(work)
	calls, err := readCalls(ctx, db, launched, work.processes.index)
	if err != nil {
		return nil, err
	}
	m := merger{rec: &recording{domains: []string{""}}, threads: newNumbering[int64](), processes: work.processes}
	m.work(work)
	m.calls(calls, launched)
	m.ranges(ranges)
	if err := db.each(ctx, func(conn *sqlite.Conn) error { return m.strings(conn, db, work, ranges) }); err != nil {
		return nil, err
	}
	m.finish()
	return m.rec, nil
}

// each runs every reader at once, each on a connection of its own, and returns
// the first error in the readers' order.
func (db *database) each(ctx context.Context, readers ...func(*sqlite.Conn) error) error {
	errs := make([]error, len(readers))
	var wait sync.WaitGroup
	for i, read := range readers {
		wait.Go(func() {
			conn, err := db.connect(ctx)
			if err != nil {
				errs[i] = err
				return
			}
			defer conn.Close()
			if err := read(conn); err != nil {
				errs[i] = db.failed("reading its events", err)
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// merger puts what the readers found into one recording, with one numbering of
// names, threads and processes.
type merger struct {
	rec       *recording
	names     interner
	threads   *numbering[int64]
	processes *numbering[int64]
	trouble   trouble
	kernelIDs []int32 // name by number in workReader.names
}

func (m *merger) work(w *workReader) {
	m.rec.kernels, m.rec.moves, m.rec.graphs, m.rec.nodes = w.kernels, w.moves, w.runs, w.nodes
	m.rec.units, m.rec.replayed = w.units.values, w.replayed
	m.rec.end = w.end
	m.trouble.add(w.trouble)
	number := m.renumber(w.threads)
	for i := range m.rec.nodes {
		m.rec.nodes[i].thread = number[m.rec.nodes[i].thread]
	}
}

// renumber gives a reader's threads their numbers in the recording.
func (m *merger) renumber(own *numbering[int64]) []int32 {
	to := make([]int32, len(own.values))
	for i, tid := range own.values {
		to[i] = m.threads.of(tid)
	}
	return to
}

// calls joins every execution with the call that launched it. Where several
// calls of a process carry the same correlation id, the last one that began
// before the execution did is the one.
func (m *merger) calls(readers []*callReader, l *launched) {
	first := make([]int32, l.pairs) // the pair's calls, as a list through next
	for i := range first {
		first[i] = -1
	}
	hits := 0
	for _, r := range readers {
		hits += len(r.hits)
	}
	next := make([]int32, 0, hits)
	m.rec.calls = make([]call, 0, hits)
	for _, r := range readers {
		number := m.renumber(r.threads)
		m.trouble.add(r.trouble)
		m.rec.launches += r.rows
		for _, h := range r.hits {
			h.thread = number[h.thread]
			if first[h.pair] >= 0 {
				m.trouble.reused++
			}
			next = append(next, first[h.pair])
			first[h.pair] = int32(len(m.rec.calls))
			m.rec.calls = append(m.rec.calls, h.call)
		}
	}
	best := func(process int32, id, start int64) int32 {
		chosen := int32(-1)
		if pair := l.find(process, id); pair >= 0 {
			for c := first[pair]; c >= 0; c = next[c] {
				if chosen < 0 || m.rec.calls[c].likelier(m.rec.calls[chosen], start) {
					chosen = c
				}
			}
		}
		return chosen
	}
	for _, list := range [][]kernel{m.rec.kernels, m.rec.moves} {
		for i := range list {
			list[i].call = best(m.rec.units[list[i].unit].process, list[i].correlate, list[i].start)
		}
	}
	for i := range m.rec.graphs {
		g := &m.rec.graphs[i]
		g.call = best(m.rec.units[g.unit].process, g.correlate, g.start)
	}
}

// likelier reports whether c rather than o launched what began at start.
func (c call) likelier(o call, start int64) bool {
	before, other := c.start <= start, o.start <= start
	switch {
	case before != other:
		return before
	case c.start != o.start:
		return (c.start > o.start) == before
	}
	return c.thread < o.thread
}

func (m *merger) ranges(r *rangeReader) {
	m.rec.ranges = r.ranges
	m.rec.rangesEnd = r.end
	m.rec.end = max(m.rec.end, r.end)
	m.trouble.add(r.trouble)
	number := m.renumber(r.threads)
	for i := range m.rec.ranges {
		m.rec.ranges[i].thread = number[m.rec.ranges[i].thread]
	}
}

// strings looks up the names that occur, and only those: the table of strings
// may hold millions.
func (m *merger) strings(conn *sqlite.Conn, db *database, w *workReader, r *rangeReader) error {
	m.names = *r.texts
	lookup, done, err := db.lookup(conn)
	if err != nil {
		return err
	}
	defer done()
	kernels, err := m.resolve(w.names, lookup, false)
	if err != nil {
		return err
	}
	for _, list := range [][]kernel{m.rec.kernels, m.rec.moves} {
		for i := range list {
			list[i].name = kernels[list[i].name]
		}
	}
	ids, err := m.resolve(r.ids, lookup, r.how == forAnalysis)
	if err != nil {
		return err
	}
	name := func(n int32) int32 {
		if n >= registered {
			return ids[n-registered]
		}
		return n
	}
	for i := range m.rec.ranges {
		m.rec.ranges[i].name = name(m.rec.ranges[i].name)
	}
	for i, text := range r.domains.texts[1:] {
		domain := fmt.Sprintf("domain %d", i+1)
		if text >= 0 {
			domain = m.names.names[name(text)]
		}
		m.rec.domains = append(m.rec.domains, domain)
	}
	return nil
}

// resolve interns the strings of all ids of a numbering.
func (m *merger) resolve(ids *numbering[int64], lookup func(int64) (string, error), short bool) ([]int32, error) {
	to := make([]int32, len(ids.values))
	for i, id := range ids.values {
		text, err := lookup(id)
		if err != nil {
			return nil, err
		}
		if short {
			text = string(withoutInstance([]byte(text)))
		}
		to[i] = m.names.add(text)
	}
	return to, nil
}

// lookup finds strings by id; an id without a row gives a name that says so.
func (db *database) lookup(conn *sqlite.Conn) (find func(int64) (string, error), done func(), err error) {
	missing := func(id int64) string { return fmt.Sprintf("string %d (not in the export)", id) }
	if !db.has(stringTable, "id", "value") {
		return func(id int64) (string, error) { return missing(id), nil }, func() {}, nil
	}
	stmt, _, err := conn.PrepareTransient("SELECT value FROM " + stringTable + " WHERE id = ?")
	if err != nil {
		return nil, nil, err
	}
	find = func(id int64) (string, error) {
		text := missing(id)
		stmt.BindInt64(1, id)
		if ok, err := stmt.Step(); err != nil {
			return "", err
		} else if ok {
			text = stmt.ColumnText(0)
		}
		return text, stmt.Reset()
	}
	return find, func() { _ = stmt.Finalize() }, nil
}

// finish closes open ranges and makes every string valid text.
func (m *merger) finish() {
	m.rec.trouble = m.trouble
	m.rec.processes = m.processes.values
	for i := range m.rec.ranges {
		if r := &m.rec.ranges[i]; r.end == openEnd {
			r.end = max(m.rec.end, r.start)
		}
	}
	for _, tid := range m.threads.values {
		m.rec.threads = append(m.rec.threads, thread{tid, m.processes.of(tid & processMask)})
	}
	m.rec.processes = m.processes.values
	for i, name := range m.names.names {
		m.names.names[i] = strings.ToValidUTF8(name, "\uFFFD")
	}
	m.rec.names = m.names.names
}
