package capture

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/moebalance/moebalance/compare/nsys/capture/rows"
)

// The tables of events. Every one is optional in an export.
const (
	kernelTable     = "CUPTI_ACTIVITY_KIND_KERNEL"
	callTable       = "CUPTI_ACTIVITY_KIND_RUNTIME"
	copyTable       = "CUPTI_ACTIVITY_KIND_MEMCPY"
	fillTable       = "CUPTI_ACTIVITY_KIND_MEMSET"
	graphTable      = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
	nodeTable       = "CUDA_GRAPH_NODE_EVENTS"
	rangeTable      = "NVTX_EVENTS"
	stringTable     = "StringIds"
	sessionTable    = "TARGET_INFO_SESSION_START_TIME"
	deviceTable     = "TARGET_INFO_CUDA_DEVICE"
	gpuTable        = "TARGET_INFO_GPU"
	rankTable       = "MPI_RANKS"
	diagnosticTable = "DIAGNOSTIC_EVENT"
)

// processMask takes the process out of a serialized thread id, whose 64 bits
// are hardware 8, virtual machine 8, process 24, thread 24.
const processMask = ^int64(0xFFFFFF)

// PID is the process's number in its operating system.
func PID(globalPid int64) int64 { return globalPid >> 24 & 0xFFFFFF }

// Issues counts the rows that could not be used as they are, by the code of their warning.
type Issues map[string]int64

// The codes, of which adopted is a reason and no code of a warning.
const (
	Backwards          = "backwards"          // events that end before they begin, left out
	OutOfRange         = "out_of_range"       // events beyond TimeLimit, left out
	OpenRanges         = "open_ranges"        // ranges never closed, taken to last to the capture's end
	Unended            = "unended_kernels"    // kernels whose end was not recorded, left out
	ReusedCorrelations = "correlation_reused" // calls with the correlation id of another call
	NoPID              = "no_process"         // kernels without a process, where there are several
	OtherDevice        = "other_device"       // kernels on another device than most of their process
	Adopted            = "adopted"            // kernels without a process, given to the only one
)

func (t Issues) add(o Issues) {
	for code, n := range o {
		t[code] += n
	}
}

// believable reports whether an event's times can be used, and counts it if not.
func (t Issues) believable(start, end int64) bool {
	if start < -TimeLimit || start > TimeLimit || end < -TimeLimit || end > TimeLimit {
		t[OutOfRange]++
		return false
	}
	if end < start {
		t[Backwards]++
		return false
	}
	return true
}

// read streams every table of an export once into a recording: what ran on the
// GPU in two halves beside the ranges, then the API calls in two halves.
func read(ctx context.Context, db *database) (*Recording, error) {
	strings, err := db.strings(ctx)
	if err != nil {
		return nil, db.failed("reading "+stringTable, err)
	}
	defer strings.close()
	left, right := newActivityReader(db, strings), newActivityReader(db, strings)
	left.share(right)
	ranges := newRangeReader(db, strings)
	if err := db.each(ctx, left.read, right.readRest, ranges.read); err != nil {
		return nil, err
	}
	if err := left.join(right); err != nil {
		return nil, db.failed("reading its events", err)
	}
	right = nil
	left.adoptOrphans()
	index := newCorrelationIndex(left)
	launches, err := readLaunches(ctx, db, index, left.processes.index, strings)
	if err != nil {
		return nil, err
	}
	m := newMerger(left)
	m.launches(launches, index, left.correlations)
	m.ranges(ranges)
	m.finish()
	Collect(len(m.rec.Kernels))
	return m.rec, nil
}

// collectAbove is the number of kernels from which memory matters.
const collectAbove = 1 << 20

// KeepGC returns what sets the garbage collector back to where it stands now; Collect changes it.
func KeepGC() (restore func()) {
	percent := debug.SetGCPercent(100) // there is no other way to ask
	debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(percent) }
}

// Collect frees what the step before needed and the next one, which is about to
// allocate as much again, does not, and lets less garbage stand from then on. Hardly any of
// it holds pointers, so that this costs nothing and saves a third of the peak.
func Collect(kernels int) {
	if kernels > collectAbove {
		debug.SetGCPercent(min(50, debug.SetGCPercent(50)))
		runtime.GC()
	}
}

// stringLookup finds registered strings, and only those that occur: their table may
// hold millions.
type stringLookup struct {
	ctx  context.Context
	stmt *sql.Stmt // nil where the export has no strings
}

func (db *database) strings(ctx context.Context) (*stringLookup, error) {
	l := &stringLookup{ctx: ctx}
	if !db.has(stringTable, "id", "value") {
		return l, nil
	}
	var err error
	l.stmt, err = db.sql.PrepareContext(ctx, "SELECT ifnull(CAST(value AS TEXT), '') FROM "+stringTable+" WHERE id = ?")
	return l, err
}

func (l *stringLookup) close() {
	if l.stmt != nil {
		_ = l.stmt.Close()
	}
}

// find is the string of an id; an id without a row gives a text that says so.
func (l *stringLookup) find(id int64) (text string, err error) {
	err = sql.ErrNoRows
	if l.stmt != nil {
		err = l.stmt.QueryRowContext(l.ctx, id).Scan(&text)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Sprintf("string %d (not in the export)", id), nil
	}
	return text, err
}

// meter tells how much of a file has been read: rows in proportion to its bytes.
// Several readers share one; a nil meter tells nobody.
type meter struct {
	bytes  int64 // of the file
	rows   int64 // in the tables that are read
	done   atomic.Int64
	told   atomic.Int64 // bytes
	report func(bytes int64)
}

// meterStride is how many rows pass between two reports.
const meterStride = 1 << 14

// newMeter is the meter of an export whose rows are counted.
func newMeter(db *database, report func(bytes int64)) *meter {
	if report == nil {
		return nil
	}
	m := &meter{bytes: db.size, report: report}
	for _, n := range db.lastRow {
		m.rows += n
	}
	return m
}

// counting is visit that reports on the way, and done what is left to report at
// its end.
func (m *meter) counting(visit func(*rows.Row) error) (counted func(*rows.Row) error, done func()) {
	if m == nil {
		return visit, func() {}
	}
	n := int64(0)
	counted = func(row *rows.Row) error {
		if n++; n%meterStride == 0 {
			m.add(meterStride)
		}
		return visit(row)
	}
	return counted, func() { m.add(n % meterStride) }
}

func (m *meter) add(rows int64) {
	done := min(m.done.Add(rows), m.rows)
	if m.rows == 0 {
		return
	}
	now := int64(float64(m.bytes) * float64(done) / float64(m.rows))
	if before := m.told.Load(); now > before && m.told.CompareAndSwap(before, now) {
		m.report(now - before)
	}
}

// finish reports what is left: the file has been read.
func (m *meter) finish() {
	if m != nil {
		m.report(m.bytes - m.told.Swap(m.bytes))
	}
}

// merger puts what the readers found into one recording, with one numbering of
// threads and processes.
type merger struct {
	rec       *Recording
	threads   *denseIDs[int64]
	processes *denseIDs[int64]
}

// newMerger begins a recording with what ran.
func newMerger(a *activityReader) *merger {
	m := &merger{threads: newIDs(), processes: a.processes}
	m.rec = &Recording{
		Issues: a.issues, NoPIDs: a.noPIDs, KernelNames: a.names, Devices: a.devices.values, Streams: a.streams.values,
		Domains: []string{""}, Operators: []string{""},
		Kernels: a.kernels, GraphNodeIDs: a.nodeIDs, GraphNodes: a.nodes, Graphs: a.graphs, End: a.end,
	}
	number := m.renumber(a.threads)
	for i := range m.rec.GraphNodes {
		m.rec.GraphNodes[i].Thread = number[m.rec.GraphNodes[i].Thread]
	}
	return m
}

// renumber gives a reader's threads their numbers in the recording.
func (m *merger) renumber(own *denseIDs[int64]) []int32 {
	to := make([]int32, len(own.values))
	for i, tid := range own.values {
		to[i] = m.threads.of(tid)
	}
	return to
}

// launches joins every execution with the call that launched it. Where several
// calls of a process carry the same correlation id, the last one that began
// before the execution did is the one, and the first one if none did.
func (m *merger) launches(readers []*launchReader, index *correlationIndex, correlations shortIDs) {
	starts := m.placeLaunches(readers, index.launches)
	launchOf := func(device int32, id, start int64) int32 {
		pair := index.find(m.rec.Devices[device].Process, id)
		switch {
		case pair < 0 || len(m.rec.Launches) == 0:
			return -1
		case starts == nil:
			return pair
		case starts[pair] == starts[pair+1]:
			return -1
		}
		same := m.rec.Launches[starts[pair]:starts[pair+1]]
		after, _ := slices.BinarySearchFunc(same, start,
			func(l Launch, at int64) int { return cmp.Or(cmp.Compare(l.Start, at), -1) })
		return starts[pair] + int32(max(after-1, 0))
	}
	var wait sync.WaitGroup
	half := len(m.rec.Kernels) / 2
	for _, list := range [][]Kernel{m.rec.Kernels[:half], m.rec.Kernels[half:]} {
		wait.Go(func() {
			for i := range list {
				list[i].Launch = launchOf(list[i].Device, correlations.id(list[i].Launch), list[i].Start)
			}
		})
	}
	wait.Wait()
	for i := range m.rec.Graphs {
		g := &m.rec.Graphs[i]
		g.Launch = launchOf(g.Device, g.Correlation, g.Start)
	}
}

// placeLaunches takes over the launches by pair and returns where those of each pair
// begin, nil where every pair has one. Only correlation ids that come again need a
// second array: the first is otherwise closed up in place.
func (m *merger) placeLaunches(readers []*launchReader, byPair []Launch) (starts []int32) {
	var again []laterLaunch
	numbers := make([][]int32, len(readers))
	for i, r := range readers {
		m.rec.Issues.add(r.issues)
		m.rec.APICalls += r.calls
		m.rec.LostKernels += r.lostKernels()
		again = append(again, r.again...)
		numbers[i] = m.renumber(r.threads)
	}
	m.rec.Issues[ReusedCorrelations] += int64(len(again))
	m.rec.Launches = byPair
	if len(again) > 0 || slices.ContainsFunc(byPair, func(l Launch) bool { return l.Thread == 0 }) {
		starts = m.closeUp(again)
	}
	for i := range m.rec.Launches {
		l := &m.rec.Launches[i]
		l.Thread, l.Operator = numbers[l.Operator][l.Thread-1], 0
	}
	return starts
}

// closeUp leaves no place between the launches, and gives those that come again one
// behind the first of their pair, in the order of their starts.
func (m *merger) closeUp(again []laterLaunch) (starts []int32) {
	from := m.rec.Launches
	starts = make([]int32, len(from)+2)
	for pair := range from {
		starts[pair+2] = min(from[pair].Thread, 1)
	}
	for _, l := range again {
		starts[l.pair+2]++
	}
	for i := 2; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	to := from // which is never ahead of from
	if len(again) > 0 {
		to = make([]Launch, starts[len(from)+1])
	}
	for pair, l := range from {
		if l.Thread > 0 {
			to[starts[pair+1]] = l
			starts[pair+1]++
		}
	}
	for _, l := range again {
		to[starts[l.pair+1]] = l.Launch
		starts[l.pair+1]++
	}
	starts = starts[:len(from)+1]
	for pair := range from {
		if of := to[starts[pair]:starts[pair+1]]; len(of) > 1 {
			slices.SortStableFunc(of, func(a, b Launch) int {
				return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Operator, b.Operator))
			})
		}
	}
	m.rec.Launches = to[:starts[len(from)]]
	return starts
}

func (m *merger) ranges(r *rangeReader) {
	m.rec.Ranges, m.rec.RangeNames, m.rec.RangesEnd = r.ranges, r.names.names, r.end
	m.rec.End = max(m.rec.End, r.end)
	m.rec.Issues.add(r.issues)
	number := m.renumber(r.threads)
	for i := range m.rec.Ranges {
		m.rec.Ranges[i].Thread = number[m.rec.Ranges[i].Thread]
	}
	for i, name := range m.rec.RangeNames {
		m.rec.RangeNames[i] = strings.ToValidUTF8(name, "\uFFFD")
	}
	for _, name := range r.domains.names[1:] {
		domain := ""
		if name >= 0 {
			domain = m.rec.RangeNames[name]
		}
		m.rec.Domains = append(m.rec.Domains, domain)
	}
}

// finish closes open ranges and lists the threads and processes.
func (m *merger) finish() {
	for i := range m.rec.Ranges {
		if r := &m.rec.Ranges[i]; r.End == openEnd {
			r.End = max(m.rec.End, r.Start)
		}
	}
	for _, tid := range m.threads.values {
		m.rec.Threads = append(m.rec.Threads, Thread{ID: tid, Process: m.processes.of(tid & processMask)})
	}
	m.rec.Processes = m.processes.values
}
