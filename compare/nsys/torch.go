package nsys

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

// Traces of PyTorch's profiler (TLLM_TORCH_PROFILE_TRACE of TensorRT-LLM,
// torch.profiler's export_chrome_trace, .json or .json.gz) are lists of events in
// the Chrome trace format with the activities of CUPTI in them. They are read as
// a stream into the same recording as an export.
//
// Of an event count: ph X (complete), cat, name, pid, tid, ts and dur in
// microseconds, and among its args correlation, device, stream and graph node id.
// Times are relative to baseTimeNanoseconds where the trace has it, else to the
// epoch. The rank is in distributedInfo.
// Source: pytorch/kineto libkineto/src/output_json.cpp.

// torchKinds are the categories read, in the spelling since PyTorch 1.12 and
// before.
var torchKinds = map[string]torchKind{
	"kernel": torchKernel, "Kernel": torchKernel,
	"cuda_runtime": torchCall, "cuda_driver": torchCall, "Runtime": torchCall,
	"user_annotation": torchRange, "cpu_op": torchRange, "Operator": torchRange, "python_function": torchRange,
	"gpu_user_annotation": torchProjection,
}

type torchKind uint8

const (
	torchIgnored torchKind = iota
	torchKernel
	torchCall
	torchRange
	torchProjection // of a range of the CPU onto a stream of the GPU
)

// torchEvent is one event as far as it is used.
type torchEvent struct {
	kind      torchKind
	complete  bool
	name      []byte
	pid, tid  int32 // numbers of their texts
	start     int64
	duration  int64
	timed     bool
	lasting   bool // has a duration
	correlate int64
	device    int64 // −1 where not recorded
	node      int64
}

// torchReader fills the parts of a recording from a stream of events.
type torchReader struct {
	scan  *jsonScanner
	event torchEvent

	work      *workReader // kernels; their process is number 0
	streams   []int32     // by kernel: the stream it ran on, among threads
	names     *interner   // of kernels and ranges
	ids       *interner   // of processes and threads, as text
	threads   *numbering[torchThread]
	hits      []hit   // calls that launch
	launches  []int64 // their correlation ids
	rows      int64   // API calls
	ranges    []span
	rangesEnd int64
	processes map[int32]bool // that made calls
	trouble   trouble

	origin int64 // time of the first event; all others are relative to it
	placed bool  // origin is known
	base   int64 // nanoseconds of the epoch at time 0
	rank   int
	world  int
	listed bool // there is a list of events
	probe  probe
}

// torchThread is a thread of a process, or a stream of a device: Kineto writes
// both as pid and tid.
type torchThread struct {
	pid, tid int32
	gpu      bool
}

// isTorchTrace looks for an object or a list at the beginning, behind gzip too.
func isTorchTrace(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	in, err := unzipped(f)
	if err != nil {
		return false
	}
	head := make([]byte, 64)
	n, _ := io.ReadFull(in, head)
	text := bytes.TrimLeft(head[:n], " \t\r\n")
	return len(text) > 0 && (text[0] == '{' || text[0] == '[')
}

// unzipped reads through gzip where the stream begins as one.
func unzipped(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	if head, _ := in.Peek(2); len(head) == 2 && head[0] == 0x1f && head[1] == 0x8b {
		return gzip.NewReader(in)
	}
	return in, nil
}

// digestTorch reads one trace of PyTorch's profiler.
func digestTorch(ctx context.Context, path string, o Options) (*digest, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rec, p, err := readTorch(ctx, f, o.Progress)
	switch {
	case errors.Is(err, context.Canceled):
		return nil, fmt.Errorf("reading %q: %w", path, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("the PyTorch trace %q is %w: it ends inside an event or a list; record it again, and let the profiler finish", path, ErrTruncated)
	case errors.Is(err, errSyntax), errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader):
		return nil, fmt.Errorf("%q is %w: %v", path, ErrDamaged, err)
	case err != nil:
		return nil, fmt.Errorf("%q: %w", path, err)
	}
	return newDigest(path, rec, p, o)
}

// readTorch reads the events of a trace.
func readTorch(ctx context.Context, from io.Reader, progress func(int64)) (*recording, *probe, error) {
	in, err := unzipped(&watchedReader{ctx, from, progress})
	if err != nil {
		return nil, nil, err
	}
	t := &torchReader{
		scan: newJSONScanner(in), names: newInterner(), ids: newInterner(), threads: newNumbering[torchThread](), rank: None,
		work:      &workReader{names: newNumbering[int64](), processes: newNumbering[int64](), units: newNumbering[unit](), streams: newNumbering[stream](), threads: newNumbering[int64]()},
		processes: map[int32]bool{},
	}
	if err := t.read(); err != nil {
		return nil, nil, err
	}
	return t.recording()
}

// watchedReader tells progress, and stops when the context does.
type watchedReader struct {
	ctx  context.Context
	from io.Reader
	tell func(int64)
}

func (w *watchedReader) Read(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, context.Canceled
	}
	n, err := w.from.Read(b)
	if w.tell != nil && n > 0 {
		w.tell(int64(n))
	}
	return n, err
}

// read walks the document: an object with a list of events, or the list alone.
func (t *torchReader) read() error {
	c, err := t.scan.peek()
	if err != nil {
		return err
	}
	if c == '[' {
		t.listed = true
		err = t.scan.array(t.readEvent)
	} else {
		err = t.scan.object(t.readMember)
	}
	if err != nil {
		return err
	}
	return t.scan.end()
}

func (t *torchReader) readMember(key []byte) error {
	switch string(key) {
	case "traceEvents":
		t.listed = true
		if c, err := t.scan.peek(); err != nil || c != '[' {
			return errors.Join(err, t.scan.skip())
		}
		return t.scan.array(t.readEvent)
	case "baseTimeNanoseconds":
		return t.number(&t.base)
	case "schemaVersion":
		text, err := t.scan.scalar()
		if n, ok := strconv.Atoi(string(text)); ok == nil {
			t.probe.schemaVersion = fmt.Sprintf("PyTorch profiler %d", n)
		}
		return err
	case "distributedInfo":
		if c, err := t.scan.peek(); err != nil || c != '{' {
			return errors.Join(err, t.scan.skip())
		}
		return t.scan.object(t.readDistributed)
	}
	return t.scan.skip()
}

func (t *torchReader) readDistributed(key []byte) error {
	var to *int
	switch string(key) {
	case "rank":
		to = &t.rank
	case "world_size":
		to = &t.world
	default:
		return t.scan.skip()
	}
	n := int64(-1)
	err := t.number(&n)
	if n >= 0 && n < maxRanks {
		*to = int(n)
	}
	return err
}

// number reads a whole number, and leaves to alone where there is none.
func (t *torchReader) number(to *int64) error {
	text, err := t.scan.scalar()
	if n, wrong := strconv.ParseInt(string(text), 10, 64); err == nil && wrong == nil {
		*to = n
	}
	return err
}

// readEvent reads one event and keeps it if it counts.
func (t *torchReader) readEvent() error {
	if c, err := t.scan.peek(); err != nil || c != '{' {
		return errors.Join(err, t.scan.skip())
	}
	e := &t.event
	*e = torchEvent{name: e.name[:0], correlate: notRecorded, device: -1, pid: -1, tid: -1}
	if err := t.scan.object(t.readField); err != nil {
		return err
	}
	if e.complete && e.timed {
		t.keep(e)
	}
	return nil
}

func (t *torchReader) readField(key []byte) error {
	e := &t.event
	switch string(key) {
	case "args":
		if c, err := t.scan.peek(); err != nil || c != '{' {
			return errors.Join(err, t.scan.skip())
		}
		return t.scan.object(t.readArgument)
	case "ts":
		return t.time(&e.start, &e.timed)
	case "dur":
		return t.time(&e.duration, &e.lasting)
	case "ph", "cat", "name", "pid", "tid":
		field := key[0]
		if string(key) == "pid" {
			field = 'P'
		}
		return t.readText(field)
	}
	return t.scan.skip()
}

// readText reads the fields whose values are names, by a letter for each.
func (t *torchReader) readText(field byte) error {
	text, err := t.scan.scalar()
	if err != nil {
		return err
	}
	switch e := &t.event; field {
	case 'p':
		e.complete = string(text) == "X"
	case 'c':
		e.kind = torchKinds[string(text)]
	case 'n':
		e.name = append(e.name[:0], text...)
	case 'P':
		e.pid = t.ids.bytes(text)
	case 't':
		e.tid = t.ids.bytes(text)
	}
	return nil
}

func (t *torchReader) readArgument(key []byte) error {
	switch e := &t.event; string(key) {
	case "correlation":
		return t.number(&e.correlate)
	case "device":
		return t.number(&e.device)
	case "graph node id":
		return t.number(&e.node)
	}
	return t.scan.skip()
}

// time reads microseconds as whole nanoseconds, exactly where they are written
// with up to three decimals, as Kineto does: a float64 would lose nanoseconds of
// the epoch.
func (t *torchReader) time(to *int64, known *bool) error {
	text, err := t.scan.scalar()
	if err != nil || len(text) == 0 {
		return err
	}
	ns, ok := nanoseconds(string(text))
	if !ok {
		t.trouble.outOfRange++
		return nil
	}
	*to, *known = ns, true
	return nil
}

// nanoseconds reads decimal microseconds; digits beyond a nanosecond are cut.
func nanoseconds(text string) (int64, bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	if strings.ContainsAny(text, "eE") {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(math.Abs(v) < math.MaxInt64/1e3) {
			return 0, false
		}
		return int64(v * 1e3), true
	}
	ns, err := strconv.ParseInt(whole+(fraction + "000")[:3], 10, 64)
	return ns, err == nil
}

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
	if (start >= 0) != (e.start >= t.origin) || e.duration > timeLimit {
		t.trouble.outOfRange++
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
	device := e.device
	if device < 0 {
		device = 0
		if n, err := strconv.ParseInt(t.text(e.pid), 10, 32); err == nil {
			device = n
		}
	}
	w := t.work
	k := kernel{start: start, end: end, correlate: e.correlate, name: t.names.bytes(e.name), call: -1}
	k.unit = w.units.of(unit{device: int32(min(max(device, -1), math.MaxInt32))})
	k.replay = w.replay(e.node)
	w.kernels = append(w.kernels, k)
	w.end = max(w.end, end)
	t.streams = append(t.streams, t.threads.of(torchThread{e.pid, e.tid, true}))
	w.streams.of(stream{k.unit, int64(t.streams[len(t.streams)-1])})
}

// keepCall keeps the calls that launch, by name: most calls only ask or wait.
func (t *torchReader) keepCall(e *torchEvent, start, end int64) {
	t.rows++
	if e.correlate == notRecorded || !bytes.Contains(e.name, []byte("Launch")) {
		return
	}
	if bytes.HasSuffix(e.name, []byte("GraphLaunch")) {
		t.probe.graphLaunches++
	}
	t.processes[e.pid] = true
	t.hits = append(t.hits, hit{call: call{start, end, t.threads.of(torchThread{e.pid, e.tid, false})}})
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
		t.trouble.openRanges++
		end = openEnd
	}
	name := bytes.TrimPrefix(withoutInstance(e.name), []byte("nn.Module: "))
	t.ranges = append(t.ranges, span{
		start: start, end: end, name: t.names.bytes(name),
		thread: t.threads.of(torchThread{e.pid, e.tid, e.kind == torchProjection}),
	})
}

// text is the process or thread with a number, empty for none.
func (t *torchReader) text(id int32) string {
	if id < 0 {
		return ""
	}
	return t.ids.names[id]
}
