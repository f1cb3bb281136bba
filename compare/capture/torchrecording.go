package capture

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/moebalance/moebalance/router/input"
)

// keep stores an event in the part of the recording that it belongs to.
func (t *torchReader) keep(e *torchEvent) {
	if !e.complete || e.kind == torchIgnored {
		return
	}
	if e.kind == torchOperator {
		if _, known := t.called[e.external]; !known && e.external != noExternal {
			t.called[e.external] = t.operators.of(e.name)
		}
		e.kind = torchRange
	}
	if e.kind == torchRange && (bytes.HasPrefix(e.name, []byte("aten::")) ||
		bytes.HasPrefix(e.name, []byte("<built-in ")) || bytes.HasSuffix(e.name, []byte(".py")) ||
		bytes.Contains(e.name, []byte(".py("))) {
		return // operators and Python frames: they name nothing of the model
	}
	if e.start == noTime || e.duration == noTime {
		t.BadTimes++
		return
	}
	if t.origin == noTime {
		t.origin = e.start
	}
	start := e.start - t.origin
	switch end := start + e.duration; {
	case !t.believable(start, end):
	case e.kind == torchKernel:
		t.keepKernel(e, start, end)
	case e.kind == torchCall:
		t.keepCall(e, start, end)
	default:
		t.addRange(Range{Start: start, End: end, Thread: t.rangeThreads.Number(t.thread(e)),
			Name: t.rangeNames.of(bytes.TrimPrefix(withoutInstance(e.name), []byte("nn.Module: ")))})
	}
}

func (t *torchReader) keepKernel(e *torchEvent, start, end int64) {
	if e.external == int64(e.correlation) {
		e.external = noExternal // before PyTorch 2.1 the correlation id stands in place of an operator's
	}
	if e.device < 0 {
		e.device = whole(string(e.pid)) // which is the device in a trace whose kernels name none
	}
	k := Kernel{Start: start, End: end, Name: t.kernelNames.of(e.name), Device: t.device(0, e.device),
		Stream: uint16(e.stream)}
	if t.addKernel(k, e.correlation, e.node) {
		t.externals = append(t.externals, e.external)
	}
}

// keepCall keeps the calls that launch or wait, by name: most calls only ask.
func (t *torchReader) keepCall(e *torchEvent, start, end int64) {
	t.APICalls++
	kind := callKindOf(string(e.name))
	if kind == otherCall || (kind == kernelCall || kind == graphLaunch) && e.correlation == noCorrelation {
		return
	}
	t.addCall(kind, Call{Start: start, End: end, Thread: t.callThreads.Number(t.thread(e))}, e.correlation)
}

// callers gives every launch the operator that made it: kernel and operator carry the
// same external id.
func (t *torchReader) callers(rec *Recording) {
	rec.Operators = t.operators.valid()
	for i, id := range t.externals {
		operator, known := t.called[id]
		if l := rec.Kernels[i].Launch; l >= 0 && known {
			rec.Launches[l].Operator = operator
		}
	}
}

// thread is an event's thread as nsys writes it: its process and, behind it, a number of its own. Where traces of
// several ranks were merged, texts name the processes, such as "[TP00] 83".
func (t *torchReader) thread(e *torchEvent) int64 {
	process, err := strconv.ParseInt(string(e.pid), 10, 64)
	if err != nil {
		process = int64(t.threads.of(e.pid))
	}
	t.key = append(append(append(t.key[:0], e.pid...), 0), e.tid...)
	return process<<24&^(-1<<48) | int64(t.threads.of(t.key))
}

// recording joins what the reader kept, by the same merger as an export's.
func (t *torchReader) recording() (*Recording, error) {
	switch {
	case !t.listed:
		return nil, &input.Error{Expected: "an nsys export or a PyTorch trace",
			Found: "JSON without a list traceEvents",
			Try:   "'moebalance report' reads results, 'moebalance counts' expert counts"}
	case len(t.Kernels) == 0:
		found := "none"
		if t.BadTimes > 0 {
			found = "events at impossible times"
		}
		return nil, &input.Error{Expected: "GPU kernels", Found: found, Try: "record with ProfilerActivity.CUDA"}
	case slices.ContainsFunc(t.callThreads.Values,
		func(tid int64) bool { return (tid^t.callThreads.Values[0])&processMask != 0 }):
		return nil, &input.Error{Expected: "launches of one process", Found: "several processes",
			Try: "pass the trace of each rank by itself"}
	}
	for _, name := range t.kernelNames.valid() {
		t.KernelNames = append(t.KernelNames, demangled(name))
	}
	rec := t.join()
	t.callers(rec)
	const plausible = int64(1e18) // the year 2001 in nanoseconds: times of the epoch
	if t.base > 0 || t.origin > plausible {
		rec.Metadata.SessionUTC = t.base + t.origin
	}
	return rec, nil
}
