package nsys

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// recording joins what the reader kept, by the same merger as an export's.
func (t *torchReader) recording() (*recording, *probe, error) {
	switch {
	case !t.listed:
		return nil, nil, fmt.Errorf("%w, nor a trace of PyTorch's profiler: it has no list traceEvents", ErrNotExport)
	case len(t.work.kernels) == 0:
		return nil, nil, fmt.Errorf("%w: the profiler did not trace CUDA: record with ProfilerActivity.CUDA", ErrNoKernels)
	case len(t.processes) > 1:
		return nil, nil, fmt.Errorf("%w: launches of %d processes in one trace: give the trace of each rank by itself", errManyProcesses, len(t.processes))
	}
	process := t.process()
	t.work.processes.of(process)
	t.work.trouble = t.trouble
	ids := newNumbering[int64]() // of threads, as the merger wants them
	for i := range t.threads.values {
		ids.of(process | int64(i))
	}

	m := merger{rec: &recording{domains: []string{""}}, names: *t.names, threads: newNumbering[int64](), processes: t.work.processes}
	m.work(t.work)
	l := newLaunched(t.work)
	calls := &callReader{threads: ids, rows: t.rows}
	for i, h := range t.hits {
		if h.pair = l.find(0, t.launches[i]); h.pair >= 0 {
			calls.hits = append(calls.hits, h)
		}
	}
	m.calls([]*callReader{calls}, l)
	m.ranges(&rangeReader{ranges: t.ranges, threads: ids, end: t.rangesEnd})
	t.project(m.rec)
	m.finish()
	for i, thread := range t.threads.values {
		m.rec.threads[i].gpu = thread.gpu
	}
	t.describe()
	return m.rec, &t.probe, nil
}

// errManyProcesses is the error of a trace that was merged from several.
var errManyProcesses = errors.New("a merged trace")

// process is the serialized id of the process that made the calls.
func (t *torchReader) process() int64 {
	pid := int64(0)
	for _, id := range slices.Sorted(maps.Keys(t.processes)) {
		pid, _ = strconv.ParseInt(t.text(id), 10, 64)
	}
	return pid & 0xFFFFFF << 24
}

// project gives a kernel without a launch a moment on its stream, where the
// profiler projected ranges onto streams.
func (t *torchReader) project(rec *recording) {
	projected := make([]bool, len(t.threads.values))
	for _, r := range rec.ranges {
		projected[r.thread] = projected[r.thread] || t.threads.values[r.thread].gpu
	}
	for i := range rec.kernels {
		if k := &rec.kernels[i]; k.call < 0 && projected[t.streams[i]] {
			k.call = int32(len(rec.calls))
			rec.calls = append(rec.calls, call{k.start, k.start, t.streams[i]})
		}
	}
}

// describe fills the probe with what the trace says about itself.
func (t *torchReader) describe() {
	p := &t.probe
	p.environment, p.mpiRanks = map[string]string{}, map[int64]int{}
	if t.rank != None {
		p.environment[rankVariables[0]] = strconv.Itoa(t.rank)
		p.rankEvidence = byDistributed
	}
	if t.world > 0 {
		p.environment[worldVariables[0]] = strconv.Itoa(t.world)
	}
	const plausible = int64(1e18) // the year 2001 in nanoseconds: times of the epoch
	if t.base > 0 || t.origin > plausible {
		p.session = t.base + t.origin
	}
}
