package capture

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// keep stores an event in the part of the recording that it belongs to.
func (t *torchReader) keep(e *torchEvent) {
	if e.kind == torchIgnored {
		return
	}
	if e.kind == torchOperator {
		if e.external != noCorrelation {
			t.called = append(t.called, torchOperatorCall{e.external, t.operators.of(e.name)})
		}
		e.kind = torchRange
	}
	if (e.kind == torchRange || e.kind == torchProjection) && (bytes.HasPrefix(e.name, []byte("aten::")) ||
		bytes.HasPrefix(e.name, []byte("<built-in ")) || bytes.HasSuffix(e.name, []byte(".py")) ||
		bytes.Contains(e.name, []byte(".py("))) {
		return // operators and Python frames: they name nothing of the model
	}
	if !t.placed {
		t.origin, t.placed = e.start, true
	}
	start := e.start - t.origin
	if (start >= 0) != (e.start >= t.origin) || e.duration > TimeLimit {
		t.work.issues[OutOfRange]++
		return
	}
	end := start + e.duration
	if !t.work.issues.believable(start, end) {
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
		t.work.issues[Unended]++
		return
	}
	device := e.device
	if device < 0 {
		device = 0
		if n, err := strconv.ParseInt(t.idText(e.pid), 10, 32); err == nil {
			device = n
		}
	}
	a := t.work
	k := Kernel{Start: start, End: end, Name: t.kernelNames.of(e.name), Launch: a.correlations.short(e.correlation)}
	k.Device = a.devices.of(Device{Ordinal: int32(min(max(device, -1), math.MaxInt32))})
	if k.GraphNode = a.graphNode(e.node); k.GraphNode > 0 && len(e.annotation) > 0 {
		t.annotations[e.node] = t.rangeNames.of(e.annotation)
	}
	a.kernels = append(a.kernels, k)
	a.end = max(a.end, end)
	if e.external == e.correlation {
		e.external = noCorrelation // before PyTorch 2.1 it is written in place of an operator's
	}
	t.externals = append(t.externals, e.external)
	t.streams = append(t.streams, t.threads.of(torchThread{e.pid, e.tid, true}))
	a.streams.of(Stream{k.Device, int64(t.streams[len(t.streams)-1])})
}

// keepCall keeps the calls that launch, by name: most calls only ask or wait.
func (t *torchReader) keepCall(e *torchEvent, start, end int64) {
	t.calls++
	if bytes.Contains(e.name, []byte("Capture")) {
		if kind := callKindOf(string(e.name)); kind != otherCall {
			t.captures = append(t.captures, torchCapture{t.threads.of(torchThread{e.pid, e.tid, false}), start,
				kind == beginCapture})
		}
	}
	if e.correlation == noCorrelation || !bytes.Contains(e.name, []byte("Launch")) {
		return
	}
	if bytes.HasSuffix(e.name, []byte("GraphLaunch")) {
		t.metadata.GraphLaunches++
	}
	t.processes[e.pid] = true
	t.launches = append(t.launches,
		torchLaunch{Launch{Start: start, End: end, Thread: t.threads.of(torchThread{e.pid, e.tid, false})},
			e.correlation, callKindOf(string(e.name)) == kernelCall})
}

func (t *torchReader) keepRange(e *torchEvent, start, end int64) {
	t.rangesEnd = max(t.rangesEnd, end)
	if !e.lasting {
		t.work.issues[OpenRanges]++
		end = openEnd
	}
	name := bytes.TrimPrefix(withoutInstance(e.name), []byte("nn.Module: "))
	t.ranges = append(t.ranges, Range{
		Start: start, End: end, Name: t.rangeNames.of(name),
		Thread: t.threads.of(torchThread{e.pid, e.tid, e.kind == torchProjection}),
	})
}

// createAnnotated makes a range of each annotation, in which its graph nodes are created, on
// a thread that there is not.
func (t *torchReader) createAnnotated(process int64) {
	if len(t.annotations) == 0 {
		return
	}
	thread := t.threads.of(torchThread{pid: -2, tid: -2})
	known := map[int32]bool{}
	for _, node := range slices.Sorted(maps.Keys(t.annotations)) {
		name := t.annotations[node]
		at := 2 * int64(name)
		t.work.nodes = append(t.work.nodes,
			GraphNode{ID: node, Created: at, Thread: t.work.threads.of(process | int64(thread))})
		if !known[name] {
			known[name] = true
			t.ranges = append(t.ranges, Range{Start: at, End: at + 1, Thread: thread, Name: name})
		}
	}
}

// callers gives every launch the operator that made it: kernel and operator carry the
// same external id.
func (t *torchReader) callers(rec *Recording) {
	rec.Operators = t.operators.names
	for i, name := range rec.Operators {
		rec.Operators[i] = strings.ToValidUTF8(name, "\uFFFD")
	}
	byID := func(a, b torchOperatorCall) int { return cmp.Compare(a.external, b.external) }
	if !slices.IsSortedFunc(t.called, byID) {
		slices.SortStableFunc(t.called, byID)
	}
	for i, id := range t.externals {
		if l := rec.Kernels[i].Launch; l >= 0 && id != noCorrelation {
			if at, ok := slices.BinarySearchFunc(t.called, torchOperatorCall{external: id}, byID); ok {
				rec.Launches[l].Operator = t.called[at].operator
			}
		}
	}
}

// idText is the process or thread with a number, empty for none.
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
		return nil, &input.Error{Expected: "an nsys export or a PyTorch trace",
			Found: "JSON without a list traceEvents",
			Try:   "'moebalance report' reads results, 'moebalance counts' expert counts", Err: ErrNotExport}
	case len(t.work.kernels) == 0:
		return nil, &input.Error{Expected: "GPU kernels", Found: "none", Try: "record with ProfilerActivity.CUDA",
			Err: ErrNoKernels}
	case len(t.processes) > 1:
		return nil, &input.Error{Expected: "launches of one process",
			Found: fmt.Sprintf("%d processes", len(t.processes)), Try: "pass the trace of each rank by itself",
			Err: errManyProcesses}
	}
	process := t.process()
	t.work.processes.of(process)
	t.work.names = t.kernelNames.names
	for i, name := range t.work.names {
		t.work.names[i] = demangled(strings.ToValidUTF8(name, "\uFFFD"))
	}
	t.createAnnotated(process)
	ids := newIDs() // of threads, as the merger wants them
	for i := range t.threads.values {
		ids.of(process | int64(i))
	}
	index := newCorrelationIndex(t.work)
	slices.SortFunc(t.captures, torchCapture.compare)
	index.launches = make([]Launch, index.pairs)
	calls := &launchReader{index: index, threads: ids, calls: t.calls}
	for _, l := range t.launches {
		if pair := index.find(0, l.correlation); pair >= 0 {
			calls.add(pair, l.Launch)
		} else if l.kernel && !t.capturing(l.Thread, l.Start) {
			calls.lost++
		}
	}
	m := newMerger(t.work)
	m.launches([]*launchReader{calls}, index, t.work.correlations)
	t.callers(m.rec)
	m.ranges(&rangeReader{ranges: t.ranges, names: t.rangeNames, domains: newDomains(), threads: ids, end: t.rangesEnd})
	t.project(m.rec)
	m.finish()
	for i, thread := range t.threads.values {
		m.rec.Threads[i].GPU = thread.gpu
	}
	t.describe()
	m.rec.Metadata = t.metadata
	return m.rec, nil
}

// capturing reports whether a thread captures a graph at a time: the capture's begin is
// the last before it, or its end the first of all.
func (t *torchReader) capturing(thread int32, at int64) bool {
	i, _ := slices.BinarySearchFunc(t.captures, torchCapture{thread: thread, at: at}, torchCapture.compare)
	if i > 0 && t.captures[i-1].thread == thread {
		return t.captures[i-1].begin
	}
	return i < len(t.captures) && t.captures[i].thread == thread && !t.captures[i].begin
}

func (c torchCapture) compare(o torchCapture) int {
	return cmp.Or(cmp.Compare(c.thread, o.thread), cmp.Compare(c.at, o.at))
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

// project gives a kernel without a launch a place in time on its stream, where the
// profiler projected ranges onto streams.
func (t *torchReader) project(rec *Recording) {
	projected := make([]bool, len(t.threads.values))
	for _, r := range rec.Ranges {
		projected[r.Thread] = projected[r.Thread] || t.threads.values[r.Thread].gpu
	}
	for i := range rec.Kernels {
		if k := &rec.Kernels[i]; k.Launch < 0 && projected[t.streams[i]] {
			k.Launch = int32(len(rec.Launches))
			rec.Launches = append(rec.Launches, Launch{Start: k.Start, End: k.Start, Thread: t.streams[i]})
		}
	}
}

// describe fills the metadata with what the trace says about itself.
func (t *torchReader) describe() {
	p := &t.metadata
	p.Environment = map[string]string{}
	if t.rank != router.NoID {
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
