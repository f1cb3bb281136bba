package capture

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/moebalance/moebalance/router"
)

// keep stores an event in the part of the recording that it belongs to.
func (t *torchReader) keep(e *torchEvent) {
	if e.kind == torchIgnored {
		return
	}
	if e.kind == torchRange && (bytes.HasPrefix(e.name, []byte("aten::")) || bytes.HasSuffix(e.name, []byte(".py")) || bytes.Contains(e.name, []byte(".py("))) {
		return // operators and Python frames: they name nothing of the model
	}
	if !t.placed {
		t.origin, t.placed = e.start, true
	}
	start := e.start - t.origin
	if (start >= 0) != (e.start >= t.origin) || e.duration > TimeLimit {
		t.trouble.OutOfRange++
		return
	}
	end := start + e.duration
	if !t.trouble.believable(start, end) {
		return
	}
	switch e.kind {
	case torchKernel:
		t.keepKernel(e, start, end)
	case torchCall:
		t.keepCall(e, start, end)
	case torchRange, torchProjection:
		t.keepRange(e, start, end)
	}
}

func (t *torchReader) keepKernel(e *torchEvent, start, end int64) {
	if !e.lasting {
		t.trouble.Unended++
		return
	}
	device := e.device
	if device < 0 {
		device = 0
		if n, err := strconv.ParseInt(t.idText(e.pid), 10, 32); err == nil {
			device = n
		}
	}
	w := t.work
	k := Kernel{Start: start, End: end, Correlation: e.correlate, Name: t.names.bytes(e.name), Launch: -1}
	k.Device = w.units.of(Device{Ordinal: int32(min(max(device, -1), math.MaxInt32))})
	k.GraphNode = w.replay(e.node)
	w.kernels = append(w.kernels, k)
	w.end = max(w.end, end)
	t.streams = append(t.streams, t.threads.of(torchThread{e.pid, e.tid, true}))
	w.streams.of(Stream{k.Device, int64(t.streams[len(t.streams)-1])})
}

// keepCall keeps the calls that launch, by name: most calls only ask or wait.
func (t *torchReader) keepCall(e *torchEvent, start, end int64) {
	t.rows++
	if e.correlate == noCorrelation || !bytes.Contains(e.name, []byte("Launch")) {
		return
	}
	if bytes.HasSuffix(e.name, []byte("GraphLaunch")) {
		t.probe.GraphLaunches++
	}
	t.processes[e.pid] = true
	t.hits = append(t.hits, hit{Launch: Launch{start, end, t.threads.of(torchThread{e.pid, e.tid, false})}})
	t.launches = append(t.launches, e.correlate)
}

// keepRange keeps a range, unless it is an operator or a Python frame, which name
// nothing of the model.
func (t *torchReader) keepRange(e *torchEvent, start, end int64) {
	if bytes.HasPrefix(e.name, []byte("aten::")) || bytes.Contains(e.name, []byte(".py(")) || bytes.HasPrefix(e.name, []byte("<built-in ")) {
		return
	}
	t.rangesEnd = max(t.rangesEnd, end)
	if !e.lasting {
		t.trouble.OpenRanges++
		end = openEnd
	}
	name := bytes.TrimPrefix(withoutInstance(e.name), []byte("nn.Module: "))
	t.ranges = append(t.ranges, Range{
		Start: start, End: end, Name: t.names.bytes(name),
		Thread: t.threads.of(torchThread{e.pid, e.tid, e.kind == torchProjection}),
	})
}

// text is the process or thread with a number, empty for none.
func (t *torchReader) idText(id int32) string {
	if id < 0 {
		return ""
	}
	return t.ids.names[id]
}

// recording joins what the reader kept, by the same merger as an export's.
func (t *torchReader) recording() (*Recording, error) {
	switch {
	case !t.listed:
		return nil, fmt.Errorf("%w, nor a trace of PyTorch's profiler: it has no list traceEvents", ErrNotExport)
	case len(t.work.kernels) == 0:
		return nil, fmt.Errorf("%w: the profiler did not trace CUDA: record with ProfilerActivity.CUDA", ErrNoKernels)
	case len(t.processes) > 1:
		return nil, fmt.Errorf("%w: launches of %d processes in one trace: give the trace of each rank by itself", errManyProcesses, len(t.processes))
	}
	process := t.process()
	t.work.processes.of(process)
	t.work.trouble = t.trouble
	ids := newIDs() // of threads, as the merger wants them
	for i := range t.threads.values {
		ids.of(process | int64(i))
	}

	m := merger{rec: &Recording{Domains: []string{""}}, names: *t.names, threads: newIDs(), processes: t.work.processes}
	m.work(t.work)
	l := newLaunched(t.work)
	calls := &callReader{threads: ids, count: t.rows}
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
		m.rec.Threads[i].GPU = thread.gpu
	}
	t.describe()
	m.rec.Metadata = t.probe
	return m.rec, nil
}

// errManyProcesses is the error of a trace that was merged from several.
var errManyProcesses = errors.New("a merged trace")

// process is the serialized id of the process that made the calls.
func (t *torchReader) process() int64 {
	pid := int64(0)
	for _, id := range slices.Sorted(maps.Keys(t.processes)) {
		pid, _ = strconv.ParseInt(t.idText(id), 10, 64)
	}
	return pid & 0xFFFFFF << 24
}

// project gives a kernel without a launch a moment on its stream, where the
// profiler projected ranges onto streams.
func (t *torchReader) project(rec *Recording) {
	projected := make([]bool, len(t.threads.values))
	for _, r := range rec.Ranges {
		projected[r.Thread] = projected[r.Thread] || t.threads.values[r.Thread].gpu
	}
	for i := range rec.Kernels {
		if k := &rec.Kernels[i]; k.Launch < 0 && projected[t.streams[i]] {
			k.Launch = int32(len(rec.Launches))
			rec.Launches = append(rec.Launches, Launch{k.Start, k.Start, t.streams[i]})
		}
	}
}

// describe fills the probe with what the trace says about itself.
func (t *torchReader) describe() {
	p := &t.probe
	p.Environment, p.MPIRanks = map[string]string{}, map[int64]int{}
	if t.rank != router.None {
		p.Environment[rankVariables[0]] = strconv.Itoa(t.rank)
		p.RankEvidence = ByDistributedInfo
	}
	if t.world > 0 {
		p.Environment[worldVariables[0]] = strconv.Itoa(t.world)
	}
	const plausible = int64(1e18) // the year 2001 in nanoseconds: times of the epoch
	if t.base > 0 || t.origin > plausible {
		p.SessionUTC = t.base + t.origin
	}
}
