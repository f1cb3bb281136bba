package capture

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/moebalance/moebalance/router/input"
)

// keep stores an event in the part of the recording that it belongs to.
func (t *torchReader) keep(e *torchEvent) {
	if e.bad > 0 {
		t.work.issues[OutOfRange] += e.bad
	}
	if !e.complete || !e.timed || e.kind == torchIgnored {
		return
	}
	if e.kind == torchOperator {
		if e.external != noExternal {
			t.called = append(t.called, torchOperatorCall{e.external, t.operators.of(e.name)})
		}
		e.kind = torchRange
	}
	if e.kind == torchRange && (bytes.HasPrefix(e.name, []byte("aten::")) ||
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
		if err := t.keepKernel(e, start, end); err != nil {
			t.in.err = err
		}
	case torchCall:
		t.keepCall(e, start, end)
	case torchRange:
		t.keepRange(e, start, end)
	}
}

func (t *torchReader) keepKernel(e *torchEvent, start, end int64) error {
	if !e.lasting {
		t.work.issues[Unended]++
		return nil
	}
	device := e.device
	if device < 0 {
		device = 0
		if n, err := strconv.ParseInt(string(e.pid), 10, 32); err == nil {
			device = n
		}
	}
	if e.external == int64(e.correlation) {
		e.external = noExternal // before PyTorch 2.1 the correlation id stands in place of an operator's
	}
	t.externals = append(t.externals, e.external)
	return t.work.add(Kernel{Start: start, End: end, Name: t.kernelNames.of(e.name),
		Device: t.work.devices.Number(Device{Ordinal: int32(min(max(device, -1), math.MaxInt32))})},
		e.correlation, e.node)
}

// callWords are in the names of calls that callKindOf knows.
var callWords = [][]byte{[]byte("Launch"), []byte("Capture"), []byte("Synchronize"), []byte("Memcpy")}

// keepCall keeps the calls that launch, by name: most calls only ask or wait.
func (t *torchReader) keepCall(e *torchEvent, start, end int64) {
	t.calls.count++
	if !slices.ContainsFunc(callWords, func(word []byte) bool { return bytes.Contains(e.name, word) }) {
		return
	}
	kind := callKindOf(string(e.name))
	if kind.launches() {
		if e.correlation == noCorrelation {
			return
		}
		t.processes[string(e.pid)] = true
	}
	t.calls.add(kind, Launch{Start: start, End: end, Thread: t.thread(e)}, 0, e.correlation)
}

func (t *torchReader) keepRange(e *torchEvent, start, end int64) {
	t.spans.add(Range{
		Start: start, End: end, Name: t.spans.names.of(bytes.TrimPrefix(withoutInstance(e.name), []byte("nn.Module: "))),
		Thread: t.thread(e),
	}, e.lasting)
}

// callers gives every launch the operator that made it: kernel and operator carry the
// same external id.
func (t *torchReader) callers(rec *Recording) {
	rec.Operators = t.operators.valid()
	byID := func(a, b torchOperatorCall) int { return cmp.Compare(a.external, b.external) }
	if !slices.IsSortedFunc(t.called, byID) {
		slices.SortStableFunc(t.called, byID)
	}
	for i, id := range t.externals {
		if l := rec.Kernels[i].Launch; l >= 0 && id != noExternal {
			if at, ok := slices.BinarySearchFunc(t.called, torchOperatorCall{external: id}, byID); ok {
				rec.Launches[l].Operator = t.called[at].operator
			}
		}
	}
}

// thread numbers a thread of a process.
func (t *torchReader) thread(e *torchEvent) int32 {
	t.key = append(append(append(t.key[:0], e.pid...), 0), e.tid...)
	return t.threads.of(t.key)
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
	t.work.processes.Number(process)
	t.calls.processes.Number(process)
	t.work.names = t.kernelNames.valid()
	for i, name := range t.work.names {
		t.work.names[i] = demangled(name)
	}
	ids := NewIndex[int64]() // of threads, whose numbers stay
	for i := range t.threads.names {
		ids.Number(process | int64(i))
	}
	t.calls.threads, t.spans.threads = ids, ids
	rec := join(t.work, t.calls, t.spans)
	t.callers(rec)
	t.describe()
	rec.Metadata = t.metadata
	return rec, nil
}

// errManyProcesses is the error of a trace that was merged from several.
var errManyProcesses = errors.New("a merged trace")

// process is the serialized id of the process that made the calls.
func (t *torchReader) process() (pid int64) {
	for id := range t.processes {
		pid, _ = strconv.ParseInt(id, 10, 64)
	}
	return pid & 0xFFFFFF << 24
}

// describe fills the metadata with what the trace says about itself.
func (t *torchReader) describe() {
	p := &t.metadata
	p.Environment = map[string]string{}
	if t.rank >= 0 && t.rank < MaxRanks {
		p.Environment[rankVariables[0]] = strconv.FormatInt(t.rank, 10)
		p.RankEvidence = "distributedInfo"
	}
	if t.world > 0 && t.world < MaxRanks {
		p.Environment[worldVariables[0]] = strconv.FormatInt(t.world, 10)
	}
	const plausible = int64(1e18) // the year 2001 in nanoseconds: times of the epoch
	if t.base > 0 || t.origin > plausible {
		p.SessionUTC = t.base + t.origin
	}
}
