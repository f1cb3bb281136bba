package nsys

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"zombiezen.com/go/sqlite"
)

// merger puts what the readers found into one recording, with one numbering of
// names, threads and processes.
type merger struct {
	rec       *recording
	names     interner
	threads   *numbering[int64]
	processes *numbering[int64]
	openEnd   int64 // when ranges end that were never closed
	trouble   trouble
}

func (m *merger) work(w *workReader) {
	m.rec.kernels, m.rec.moves, m.rec.graphs, m.rec.nodes = w.kernels, w.moves, w.runs, w.nodes
	m.rec.units, m.rec.streams, m.rec.replayed = w.units.values, w.streams.values, w.replayed
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
// before the execution did is the one, and the first one if none did.
func (m *merger) calls(readers []*callReader, l *launched) {
	starts := m.sortCalls(readers, l.pairs)
	launcher := func(u int32, id, start int64) int32 {
		pair := l.find(m.rec.units[u].process, id)
		if pair < 0 || starts[pair] == starts[pair+1] {
			return -1
		}
		same := m.rec.calls[starts[pair]:starts[pair+1]]
		after, _ := slices.BinarySearchFunc(same, start, func(c call, at int64) int { return cmp.Or(cmp.Compare(c.start, at), -1) })
		return starts[pair] + int32(max(after-1, 0))
	}
	var wait sync.WaitGroup
	half := len(m.rec.kernels) / 2
	for _, list := range [][]kernel{m.rec.kernels[:half], m.rec.kernels[half:], m.rec.moves} {
		wait.Go(func() {
			for i := range list {
				list[i].call = launcher(list[i].unit, list[i].correlate, list[i].start)
			}
		})
	}
	wait.Wait()
	for i := range m.rec.graphs {
		g := &m.rec.graphs[i]
		g.call = launcher(g.unit, g.correlate, g.start)
	}
}

// sortCalls puts the calls in the order of their pairs, those of one pair in the
// order of their starts, and returns where each pair's begin.
func (m *merger) sortCalls(readers []*callReader, pairs int) (starts []int32) {
	starts = make([]int32, pairs+2)
	for _, r := range readers {
		m.trouble.add(r.trouble)
		m.rec.launches += r.count
		for i := range r.hits {
			starts[r.hits[i].pair+2]++
		}
	}
	for i := 2; i < len(starts); i++ {
		m.trouble.reused += int64(max(starts[i]-1, 0))
		starts[i] += starts[i-1]
	}
	m.rec.calls = make([]call, starts[pairs+1])
	for _, r := range readers {
		number := m.renumber(r.threads)
		for _, h := range r.hits {
			h.thread = number[h.thread]
			m.rec.calls[starts[h.pair+1]] = h.call
			starts[h.pair+1]++
		}
	}
	if m.trouble.reused > 0 {
		for pair := range pairs {
			slices.SortStableFunc(m.rec.calls[starts[pair]:starts[pair+1]], func(a, b call) int { return cmp.Compare(a.start, b.start) })
		}
	}
	return starts[:pairs+1]
}

func (m *merger) ranges(r *rangeReader) {
	m.rec.ranges = r.ranges
	m.rec.rangesEnd = r.end
	m.rec.end = max(m.rec.end, r.end)
	m.openEnd = m.rec.end
	if r.how == forStatistics {
		m.openEnd = r.end // as the profiler's statistics have it
	}
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
	for _, text := range r.domains.texts[1:] {
		domain := ""
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

// finish closes open ranges and makes every string valid text.
func (m *merger) finish() {
	m.rec.trouble = m.trouble
	m.rec.processes = m.processes.values
	for i := range m.rec.ranges {
		if r := &m.rec.ranges[i]; r.end == openEnd {
			r.end = max(m.openEnd, r.start)
		}
	}
	for _, tid := range m.threads.values {
		m.rec.threads = append(m.rec.threads, thread{id: tid, process: m.processes.of(tid & processMask)})
	}
	m.rec.processes = m.processes.values
	for i, name := range m.names.names {
		m.names.names[i] = strings.ToValidUTF8(name, "\uFFFD")
	}
	m.rec.names = m.names.names
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
