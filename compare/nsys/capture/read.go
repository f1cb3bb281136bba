package capture

import (
	"context"
	"runtime"
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
	deviceTable  = "TARGET_INFO_CUDA_DEVICE"
)

// processMask takes the process out of a serialized thread id, whose 64 bits
// are hardware 8, virtual machine 8, process 24, thread 24.
const processMask = ^int64(0xFFFFFF)

// pidOf is the process's number in its operating system.
func PID(globalPid int64) int64 { return globalPid >> 24 & 0xFFFFFF }

// tidOf is the thread's number in its operating system.
func TID(globalTid int64) int64 { return globalTid & 0xFFFFFF }

// depth says how much of an export a question needs.
type depth int

const (
	forAnalysis   depth = iota // kernels, and names without what makes each instance unique
	forStatistics              // copies and fills too, and names as recorded
)

// trouble counts the rows that could not be used as they are.
type Issues struct {
	Backwards          int64 // events that end before they begin, left out
	OutOfRange         int64 // events beyond timeLimit, left out
	OpenRanges         int64 // ranges never closed, taken to last to the capture's end
	Unended            int64 // kernels whose end was not recorded, left out
	ReusedCorrelations int64 // calls with the correlation id of another call
	Adopted            int64 // kernels without a process, given to the only one
	NoPID              int64 // kernels without a process, where there are several
	OtherDevice        int64 // kernels on another device than most of their process
	NoPIDs             bool  // no process beside any correlation id
}

func (t *Issues) add(o Issues) {
	t.Backwards += o.Backwards
	t.OutOfRange += o.OutOfRange
	t.OpenRanges += o.OpenRanges
	t.Unended += o.Unended
	t.ReusedCorrelations += o.ReusedCorrelations
	t.Adopted += o.Adopted
	t.NoPID += o.NoPID
	t.OtherDevice += o.OtherDevice
	t.NoPIDs = t.NoPIDs || o.NoPIDs
}

// believable reports whether an event's times can be used, and counts it if not.
func (t *Issues) believable(start, end int64) bool {
	if start < -TimeLimit || start > TimeLimit || end < -TimeLimit || end > TimeLimit {
		t.OutOfRange++
		return false
	}
	if end < start {
		t.Backwards++
		return false
	}
	return true
}

// read streams every table of an export once into a recording: what ran on the
// GPU in two halves beside the ranges, then the API calls in two halves.
func read(ctx context.Context, db *database, how depth) (*Recording, error) {
	work, rest := newWorkReader(db, how), newWorkReader(db, how)
	work.share(rest)
	ranges := &rangeReader{db: db, how: how, texts: newInterner(), ids: newIDs(), threads: newIDs(), domains: newDomains()}
	if err := db.each(ctx, work.read, rest.readRest, ranges.read); err != nil {
		return nil, err
	}
	if err := work.join(rest); err != nil {
		return nil, db.failed("reading its events", err)
	}
	rest = nil
	work.adoptStrays()
	launched := newLaunched(work)
	calls, err := readCalls(ctx, db, launched, work.processes.index)
	if err != nil {
		return nil, err
	}
	m := merger{rec: &Recording{Domains: []string{""}}, threads: newIDs(), processes: work.processes}
	m.work(work)
	m.calls(calls, launched)
	m.ranges(ranges)
	if err := db.each(ctx, func(_ context.Context, conn *sqlite.Conn) error { return m.strings(conn, db, work, ranges) }); err != nil {
		return nil, err
	}
	m.finish()
	Collect(len(m.rec.Kernels))
	return m.rec, nil
}

// collectAbove is the number of kernels from which memory matters.
const collectAbove = 1 << 20

// collect frees what the step before needed and the next one, which is about to
// allocate as much again, does not. Hardly any of it holds pointers, so that this
// costs nothing and saves a third of the peak.
func Collect(kernels int) {
	if kernels > collectAbove {
		runtime.GC()
	}
}

// each runs every reader at once, each on a connection of its own, and returns
// the first error in the readers' order.
func (db *database) each(ctx context.Context, readers ...func(context.Context, *sqlite.Conn) error) error {
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
			if err := read(ctx, conn); err != nil {
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
