package capture

import (
	"context"
	"runtime"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// The tables of events. Every one is optional in an export.
const (
	kernelTable = "CUPTI_ACTIVITY_KIND_KERNEL"
	callTable   = "CUPTI_ACTIVITY_KIND_RUNTIME"
	graphTable  = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
	nodeTable   = "CUDA_GRAPH_NODE_EVENTS"
	rangeTable  = "NVTX_EVENTS"
	stringTable = "StringIds"
)

// processMask takes the process out of a serialized thread id, whose 64 bits
// are hardware 8, virtual machine 8, process 24, thread 24.
const processMask = ^int64(0xFFFFFF)

// PID is the process's number in its operating system.
func PID(globalPid int64) int64 { return globalPid >> 24 & 0xFFFFFF }

// read reads every table of an export once, beside the others, into a recording.
func read(ctx context.Context, db *database) (*Recording, error) {
	d := newDraft()
	group, reading := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := db.readKernels(reading, d); err != nil {
			return err
		}
		if err := db.readGraphs(reading, d); err != nil {
			return err
		}
		return db.readNodes(reading, d)
	})
	group.Go(func() error { return db.readCalls(reading, d) })
	group.Go(func() error { return db.readRanges(reading, d) })
	if err := group.Wait(); err != nil {
		return nil, db.failed(ctx, "reading its events", err)
	}
	rec := d.join()
	Collect(len(rec.Kernels))
	return rec, nil
}

// collectAbove is the number of kernels from which memory matters.
const collectAbove = 1 << 20

// Collect frees what the step before needed and the next one, which is about to
// allocate as much again, does not, and lets less garbage stand from then on. Hardly any of
// it holds pointers, so that this costs nothing and saves a third of the peak.
func Collect(kernels int) {
	if kernels > collectAbove {
		debug.SetGCPercent(min(50, debug.SetGCPercent(50)))
		runtime.GC()
	}
}
