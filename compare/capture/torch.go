package capture

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"sync"

	"github.com/moebalance/moebalance/router/input"
)

// Traces of PyTorch's profiler (TLLM_TORCH_PROFILE_TRACE of TensorRT-LLM,
// torch.profiler's export_chrome_trace, .json or .json.gz) are lists of events in
// the Chrome trace format with the activities of CUPTI in them. They are read as
// a stream into the same recording as an export.
//
// Of an event count: ph X (complete), cat, name, pid, tid, ts and dur in
// microseconds, and among its args correlation, device, graph node id and External
// id, by which a kernel has the operator that launched it.
// Times are relative to baseTimeNanoseconds where the trace has it, else to the
// epoch. The rank is in distributedInfo.
// Source: pytorch/kineto libkineto/src/output_json.cpp.

// torchKinds are the categories read, in the spelling since PyTorch 1.12 and
// before.
var torchKinds = map[string]torchKind{
	"kernel": torchKernel, "Kernel": torchKernel,
	"cuda_runtime": torchCall, "cuda_driver": torchCall, "xpu_runtime": torchCall, "Runtime": torchCall,
	"user_annotation": torchRange, "cpu_op": torchOperator, "Operator": torchOperator, "python_function": torchRange,
}

type torchKind uint8

const (
	torchIgnored torchKind = iota
	torchKernel
	torchCall
	torchRange
	torchOperator // a range, and by its external id the caller of kernels
)

// torchReader fills in a recording from a stream of events, all of one process.
type torchReader struct {
	*draft
	in    jsonScanner
	event torchEvent

	kernelNames interner
	operators   interner
	threads     interner        // of calls and ranges: process, thread
	key         []byte          // of a thread
	externals   []int64         // by kernel: the external id of the operator that launched it
	called      map[int64]int32 // the operator that was called first with an external id

	origin int64 // time of the first event; all others are relative to it
	base   int64 // nanoseconds of the epoch at time 0
	listed bool  // there is a list of events
}

// isTorchTrace looks for an object, or a list of such, at the beginning, behind gzip too. Lines of logs begin with
// brackets, too: "[08/04/2026-19:08:13] ".
func isTorchTrace(path string) bool { return beginsJSON.Match(Head(path, 64)) }

var beginsJSON = regexp.MustCompile(`^\s*(?:\{|\[\s*(?:[{\[\]]|$))`)

var gzipMagic = []byte{0x1f, 0x8b}

// byteOrderMark is what some editors write before a text.
const byteOrderMark = "\ufeff"

// unzipped reads through gzip where the stream begins as one, and behind a byte order mark.
func unzipped(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	if head, _ := in.Peek(2); bytes.Equal(head, gzipMagic) {
		return gzip.NewReader(in)
	}
	if head, _ := in.Peek(len(byteOrderMark)); string(head) == byteOrderMark {
		_, _ = in.Discard(len(byteOrderMark))
	}
	return in, nil
}

// ahead reads, and unpacks, while what was read before is looked at. It ends with stop.
func ahead(in io.Reader) (read io.Reader, stop func()) {
	var reading sync.WaitGroup
	from, to := io.Pipe()
	reading.Go(func() {
		_, err := io.CopyBuffer(to, struct{ io.Reader }{in}, make([]byte, 1<<16))
		to.CloseWithError(err)
	})
	return from, func() { from.Close(); reading.Wait() }
}

// readTorchTrace reads one trace of PyTorch's profiler.
func readTorchTrace(ctx context.Context, path string, progress func(int64)) (*Recording, error) {
	f, err := input.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rec, err := readTorch(ctx, f, progress)
	if err == nil {
		return rec, nil
	}
	fault := &input.Error{Err: err, Try: "record it again, and let the profiler finish"}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		fault.Expected, fault.Found = "a whole PyTorch trace", "one that ends inside an event or a list"
	}
	errors.As(err, &fault)
	fault.File = path
	return nil, fault
}

// readTorch reads the events of a trace.
func readTorch(ctx context.Context, from io.Reader, progress func(int64)) (*Recording, error) {
	in, err := unzipped(reading(func(b []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Canceled
		}
		n, err := from.Read(b)
		if progress != nil {
			progress(int64(n))
		}
		return n, err
	}))
	if err != nil {
		return nil, err
	}
	in, stop := ahead(in)
	defer stop()
	t := &torchReader{draft: newDraft(), in: jsonScanner{in: in}, origin: noTime, called: map[int64]int32{}}
	t.Metadata = Metadata{SchemaVersion: "PyTorch profiler", RankEvidence: "distributedInfo",
		Environment: map[string]string{}}
	t.operators.of(nil)
	if t.read(); t.in.err != nil {
		return nil, t.in.err
	}
	return t.recording()
}

// reading is a function as an io.Reader.
type reading func([]byte) (int, error)

func (r reading) Read(b []byte) (int, error) { return r(b) }

// read walks the document: a list of events, or an object with one and with what the trace says about itself, such as
// the name of the first device.
func (t *torchReader) read() {
	in, about := &t.in, &t.Metadata
	if in.peek() == '[' {
		t.events()
	} else {
		t.members(map[string]func(){
			"traceEvents":         t.events,
			"baseTimeNanoseconds": func() { t.number(&t.base) },
			"schemaVersion": func() {
				if n, err := strconv.Atoi(string(in.value())); err == nil {
					about.SchemaVersion = fmt.Sprintf("PyTorch profiler %d", n)
				}
			},
			"distributedInfo": func() {
				t.members(map[string]func(){
					"rank":       func() { about.Environment[rankVariables[0]] = string(in.value()) },
					"world_size": func() { about.Environment[worldVariables[0]] = string(in.value()) },
				})
			},
			"deviceProperties": func() {
				for list := in.begin('['); list && in.next(']'); {
					t.members(map[string]func(){"name": func() {
						about.GPU = cmp.Or(about.GPU, valid(string(in.value())))
					}})
				}
			},
		})
	}
	if t.listed { // else it is no trace, whatever follows
		in.end()
	}
}

// events reads the list of events.
func (t *torchReader) events() {
	t.listed = true
	for list := t.in.begin('['); list && t.in.next(']'); {
		if t.readEvent(); t.in.err == nil {
			t.keep(&t.event)
		}
	}
}

// members reads those members of an object that are known.
func (t *torchReader) members(known map[string]func()) {
	for object := t.in.begin('{'); object && t.in.next('}'); {
		if read := known[string(t.in.name())]; read != nil {
			read()
		} else {
			t.in.skip()
		}
	}
}

// number reads a whole number, and leaves to alone where there is none.
func (t *torchReader) number(to *int64) {
	if n, err := strconv.ParseInt(string(t.in.value()), 10, 64); err == nil {
		*to = n
	}
}
