package capture

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
	rec       *Recording
	names     interner
	threads   *numbering[int64]
	processes *numbering[int64]
	openEnd   int64 // when ranges end that were never closed
	trouble   Issues
}

func (m *merger) work(w *workReader) {
	m.rec.Kernels, m.rec.MemoryOps, m.rec.Graphs, m.rec.GraphNodes = w.kernels, w.moves, w.runs, w.nodes
	m.rec.Devices, m.rec.Streams, m.rec.GraphNodeIDs = w.units.values, w.streams.values, w.replayed
	m.rec.End = w.end
	m.trouble.add(w.trouble)
	number := m.renumber(w.threads)
	for i := range m.rec.GraphNodes {
		m.rec.GraphNodes[i].Thread = number[m.rec.GraphNodes[i].Thread]
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
func (m *merger) calls(readers []*callReader, l *correlationIndex) {
	starts := m.sortCalls(readers, l.pairs)
	launcher := func(u int32, id, start int64) int32 {
		pair := l.find(m.rec.Devices[u].Process, id)
		if pair < 0 || starts[pair] == starts[pair+1] {
			return -1
		}
		same := m.rec.Launches[starts[pair]:starts[pair+1]]
		after, _ := slices.BinarySearchFunc(same, start, func(c Launch, at int64) int { return cmp.Or(cmp.Compare(c.Start, at), -1) })
		return starts[pair] + int32(max(after-1, 0))
	}
	var wait sync.WaitGroup
	half := len(m.rec.Kernels) / 2
	for _, list := range [][]Kernel{m.rec.Kernels[:half], m.rec.Kernels[half:], m.rec.MemoryOps} {
		wait.Go(func() {
			for i := range list {
				list[i].Launch = launcher(list[i].Device, list[i].Correlation, list[i].Start)
			}
		})
	}
	wait.Wait()
	for i := range m.rec.Graphs {
		g := &m.rec.Graphs[i]
		g.Launch = launcher(g.Device, g.Correlation, g.Start)
	}
}

// sortCalls puts the calls in the order of their pairs, those of one pair in the
// order of their starts, and returns where each pair's begin.
func (m *merger) sortCalls(readers []*callReader, pairs int) (starts []int32) {
	starts = make([]int32, pairs+2)
	for _, r := range readers {
		m.trouble.add(r.trouble)
		m.rec.APICalls += r.count
		for i := range r.hits {
			starts[r.hits[i].pair+2]++
		}
	}
	for i := 2; i < len(starts); i++ {
		m.trouble.ReusedCorrelations += int64(max(starts[i]-1, 0))
		starts[i] += starts[i-1]
	}
	m.rec.Launches = make([]Launch, starts[pairs+1])
	for _, r := range readers {
		number := m.renumber(r.threads)
		for _, h := range r.hits {
			h.Thread = number[h.Thread]
			m.rec.Launches[starts[h.pair+1]] = h.Launch
			starts[h.pair+1]++
		}
	}
	if m.trouble.ReusedCorrelations > 0 {
		for pair := range pairs {
			slices.SortStableFunc(m.rec.Launches[starts[pair]:starts[pair+1]], func(a, b Launch) int { return cmp.Compare(a.Start, b.Start) })
		}
	}
	return starts[:pairs+1]
}

func (m *merger) ranges(r *rangeReader) {
	m.rec.Ranges = r.ranges
	m.rec.RangesEnd = r.end
	m.rec.End = max(m.rec.End, r.end)
	m.openEnd = m.rec.End
	if r.how == forStatistics {
		m.openEnd = r.end // as the profiler's statistics have it
	}
	m.trouble.add(r.trouble)
	number := m.renumber(r.threads)
	for i := range m.rec.Ranges {
		m.rec.Ranges[i].Thread = number[m.rec.Ranges[i].Thread]
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
	for _, list := range [][]Kernel{m.rec.Kernels, m.rec.MemoryOps} {
		for i := range list {
			list[i].Name = kernels[list[i].Name]
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
	for i := range m.rec.Ranges {
		m.rec.Ranges[i].Name = name(m.rec.Ranges[i].Name)
	}
	for _, text := range r.domains.texts[1:] {
		domain := ""
		if text >= 0 {
			domain = m.names.names[name(text)]
		}
		m.rec.Domains = append(m.rec.Domains, domain)
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
	m.rec.Issues = m.trouble
	m.rec.Processes = m.processes.values
	for i := range m.rec.Ranges {
		if r := &m.rec.Ranges[i]; r.End == openEnd {
			r.End = max(m.openEnd, r.Start)
		}
	}
	for _, tid := range m.threads.values {
		m.rec.Threads = append(m.rec.Threads, Thread{ID: tid, Process: m.processes.of(tid & processMask)})
	}
	m.rec.Processes = m.processes.values
	for i, name := range m.names.names {
		m.names.names[i] = strings.ToValidUTF8(name, "\uFFFD")
	}
	m.rec.Names = m.names.names
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
