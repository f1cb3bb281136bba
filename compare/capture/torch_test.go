package capture

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/moebalance/moebalance/testdata/require"
)

var torchTraces = []string{"../../testdata/torch/rank0.pt.trace.json",
	"../../testdata/torch/rank1.pt.trace.json.gz"}

// Cut anywhere before its last brace, plain or zipped, a trace is an error.
func TestTorchTraceCutAnywhere(t *testing.T) {
	for _, path := range torchTraces {
		content := require.Value(os.ReadFile(path))
		for n := range bytes.TrimSpace(content) {
			if _, err := readTorch(context.Background(), bytes.NewReader(content[:n]), nil); err == nil {
				t.Fatalf("%s cut at %d of %d: want an error", path, n, len(content))
			}
		}
		cut := filepath.Join(t.TempDir(), filepath.Base(path))
		require.NoError(t, os.WriteFile(cut, content[:len(content)/2], 0o600))
		damaged := filepath.Join(t.TempDir(), filepath.Base(path))
		bad := bytes.Clone(content)
		copy(bad[len(bad)/2:], "\xff\xff\xff\xff\xff\xff\xff\xff")
		require.NoError(t, os.WriteFile(damaged, append(bad, '}'), 0o600))
		for file, want := range map[string]string{damaged: "", cut: "want a whole PyTorch trace"} {
			if _, err := Read(context.Background(), file, nil); err == nil || !strings.Contains(err.Error(), want) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: want one line with %q, have %v", path, want, err)
			}
		}
	}
}

func TestTorchTracesThatAreNone(t *testing.T) {
	kernel := `{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,"args":{"device":0,"correlation":1}}`
	const call = `,{"ph":"X","cat":"xpu_runtime","name":"urEnqueueKernelLaunch","tid":1,"ts":1,"dur":1,"args":{"correlation":1},"pid":`
	for _, c := range []struct {
		what, text, want string
	}{
		{"an object of something else", `{"a": [1, {"b": null}]}`, "without a list traceEvents"},
		{"no events", `{"traceEvents": []}`, "want GPU kernels"},
		{"events of wrong types", `{"traceEvents": [1, "x", null, [], {"ph": 3, "name": {}, "ts": [], "args": 7}]}`,
			"want GPU kernels"},
		{"a list of wrong type", `{"traceEvents": {"ph": "X"}}`, "want GPU kernels"},
		{"two processes", `[` + kernel + call + `"[TP00] 8"}` + call + `"[TP01] 8"}]`, "several processes"},
		{"a missing comma", `[` + kernel + kernel + `]`, "want ','"},
		{"more behind the end", `[` + kernel + `] x`, "the end of the document"},
		{"a bad escape", `[{"name": "\x"}]`, "escapes"},
		{"too deep", strings.Repeat("[", 20_000), "levels"},
		{"no value", `[{"ts": }]`, "want a value"},
		{"a string without an end", `[{"name": "` + strings.Repeat("x", 2*tokenLimit), "a longer one"},
		{"a bare list", `[`, "a whole PyTorch trace"},
	} {
		path := filepath.Join(t.TempDir(), "trace.json")
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
		if _, err := Read(context.Background(), path, nil); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: want one line with %q, have %v", c.what, c.want, err)
		}
	}
}

// What is not read of a trace may be of any size.
func TestTorchTraceWithALargeMember(t *testing.T) {
	text := `{"stackFrames": {"a": [` + strings.Repeat(`1],"b":[`, tokenLimit/6) + `]}, "more": [` +
		strings.Repeat(`"frame",`, tokenLimit/6) + `0], "traceEvents": [{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":2}]}`
	if rec, err := readTorch(context.Background(), strings.NewReader(text), nil); err != nil || len(rec.Kernels) != 1 {
		t.Errorf("have %v", err)
	}
}

// Events whose times cannot be are counted and left out, and the others stay.
func TestTorchTimes(t *testing.T) {
	event := func(ts, dur string) string {
		return `{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":` + ts + `,"dur":` + dur + `}`
	}
	text := "[" + strings.Join([]string{event("1.5", "2.0019"), event("1e0", "0.25"), event("1", "-1"), event("99999999999999999999", "1"), event(`"NaN"`, "1"), event("1", `inf, "line
\"break": NaN`), event("-9223372036854775.808", "1"),
		`{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1}`}, ",") + "]"
	rec := require.Value(readTorch(context.Background(), strings.NewReader(text), nil))
	same(t, "kernels", len(rec.Kernels), 2)
	same(t, "first", rec.Kernels[0].End-rec.Kernels[0].Start, 2001)
	same(t, "second starts before the first", rec.Kernels[1].Start, -500)
	same(t, "left out", rec.BadTimes, 6)
}

// Digits of the epoch are all read: a float64 would move them by up to 256 ns.
func TestTorchTimesOfTheEpoch(t *testing.T) {
	for text, want := range map[string]int64{
		"1732741256123456.789": 1732741256123456789, "1732741256123456.7899": 1732741256123456789,
		"9223372036854775.8080": noTime, "00000000000000000001.5": 1500, "1.2500000000000000000000": 1250,
		"99999999999999999999.5": noTime, "18446744073709551617": noTime,
	} {
		same(t, text, nanoseconds([]byte(text)), want)
	}
}

// Kernels whose durations do not fit a sum are left out, and with them their operators: 1025 of 2^53 ns do not.
func TestTorchKernelsThatDoNotFit(t *testing.T) {
	text := "[" + strings.Repeat(`{"ph":"X","cat":"kernel","name":"k","ts":0,"dur":9007199254740,"args":{"external id":1}},`, 1100)
	rec := require.Value(readTorch(context.Background(), strings.NewReader(strings.TrimSuffix(text, ",")+"]"), nil))
	same(t, "kernels", len(rec.Kernels), 1024)
	same(t, "left out", rec.BadTimes, 76)
}

// A kernel that names no device ran on the one that its process stands for.
func TestTorchDevices(t *testing.T) {
	for event, want := range map[string]int32{`"pid":3`: 3, `"pid":3,"args":{"device":1}`: 1,
		`"pid":3,"args":{"device":0}`: 0, `"pid":"GPU"`: 0} {
		text := `[{"ph":"X","cat":"kernel","name":"k","ts":0,"dur":1,` + event + `}]`
		rec := require.Value(readTorch(context.Background(), strings.NewReader(text), nil))
		same(t, event, rec.Devices[rec.Kernels[0].Device].Ordinal, want)
	}
}

// An error of the reader stays the error.
func TestTorchTraceThatCannotBeRead(t *testing.T) {
	broken := errors.New("the disk went away")
	in := io.MultiReader(strings.NewReader(`{"traceEvents": [`), iotest.ErrReader(broken))
	if _, err := readTorch(context.Background(), in, nil); !errors.Is(err, broken) {
		t.Errorf("want the reader's error, have %v", err)
	}
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: want %v, have %v", what, want, got)
	}
}
