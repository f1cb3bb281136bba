package trace

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
)

var torchRanks = []string{filepath.Join(testdata, "torch/rank0.pt.trace.json"),
	filepath.Join(testdata, "torch/rank1.pt.trace.json.gz")}

// The fixtures are two ranks of one step. Layer 3: gate 5.125 µs; experts 30 µs on
// rank 0 and 10 µs on rank 1, so max/mean is 30/20; an all-to-all that rank 0
// enters 20 µs after rank 1 and both leave together. Layer 4: 8 µs on a stream,
// launch not recorded, placed by the annotation on that stream. 2 µs nowhere.
func TestTorchTraceByHand(t *testing.T) {
	trace := mustRead(t, Options{Threshold: 0.1}, torchRanks...)
	equal(t, "ranks", len(trace.Ranks), 2)
	equal(t, "evidence", trace.Ranks[1].Evidence, capture.ByDistributedInfo)
	equal(t, "process", trace.Ranks[1].PID, 5200)
	equal(t, "format", trace.Exports[0].SchemaVersion, "PyTorch profiler 1")
	equal(t, "kernels", trace.Exports[0].Kernels, 5)
	equal(t, "API calls", trace.Exports[0].Launches, 4)
	equal(t, "gpu time", trace.Coverage.GPUNS, 2*(5125+8000+2000)+30000+10000+60000+80000)
	near(t, "launch share", trace.Coverage.LaunchShare,
		float64(2*5125+30000+10000+60000+80000)/float64(trace.Coverage.GPUNS))
	equal(t, "gate", phaseTime(trace, 0, 3, PhaseRouter), 5125)
	equal(t, "placed by the stream", phaseTime(trace, 0, 4, PhaseExperts), 8000)
	equal(t, "placed by its name alone", phaseTime(trace, 0, NoID, PhaseExperts), 2000)
	near(t, "max/mean of layer 3", trace.Imbalance[0].MaxOverMean, 1.5)
	near(t, "wait", trace.Collectives[1].WaitNS, 20000)
	near(t, "transfer", trace.Collectives[1].TransferNS, 60000)
	near(t, "wait of the last", trace.Collectives[0].WaitNS, 0)
	for _, c := range trace.Cells {
		if c.Layer == 3 && c.Step != 7 {
			t.Errorf("want step 7, have %+v", c)
		}
	}
}

// asTorch writes a recording as PyTorch's profiler would have traced it, with
// its events in any order.
func asTorch(t *testing.T, rec *capture.Recording, rank int, seed uint64) []byte {
	t.Helper()
	const base, origin = 1763400000000000000, 7_000_000_000
	var events []string
	us := func(ns int64) string { return fmt.Sprintf("%d.%03d", (ns+origin)/1000, (ns+origin)%1000) }
	event := func(cat, name string, tid int32, start, end int64, pid int, args string) {
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events,
			fmt.Sprintf(`{"ph": "X", "cat": %q, "name": %s, "pid": %d, "tid": %d, "ts": %s, "dur": %d.%03d, "args": {%s}}`,
				cat, quoted, pid, tid, us(start), (end-start)/1000, (end-start)%1000, args))
	}
	for _, k := range rec.Kernels {
		event("kernel", rec.KernelNames[k.Name], 7, k.Start, k.End, int(rec.Devices[k.Device].Ordinal),
			fmt.Sprintf(`"device": %d, "correlation": %d`, rec.Devices[k.Device].Ordinal, k.Launch+1))
	}
	for i, c := range rec.Launches {
		event("cuda_runtime", "cudaLaunchKernel", c.Thread+40, c.Start, c.End, 77,
			fmt.Sprintf(`"correlation": %d`, i+1))
	}
	for _, r := range rec.Ranges {
		if r.Domain == 0 {
			event("user_annotation", rec.RangeNames[r.Name], r.Thread+40, r.Start, r.End, 77, "")
		}
	}
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	return fmt.Appendf(nil,
		`{"schemaVersion": 1, "traceEvents": [%s], "baseTimeNanoseconds": %d, "distributedInfo": {"rank": %d}}`,
		strings.Join(events, ",\n"), int64(base), rank)
}

// A capture written as a PyTorch trace, in any order of events, gives the same
// numbers as its export.
func TestTorchTraceOfACaptureEqualsItsExport(t *testing.T) {
	export := filepath.Join(testdata, "gptoss-ep4-ranks/normal.rank2.sqlite")
	rec, err := capture.Read(context.Background(), export, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := mustRead(t, Options{}, export)
	for seed := range uint64(3) {
		path := filepath.Join(t.TempDir(), "trace.json")
		if err := os.WriteFile(path, asTorch(t, rec, 2, seed), 0o600); err != nil {
			t.Fatal(err)
		}
		have := mustRead(t, Options{}, path)
		for _, part := range []struct {
			what       string
			want, have any
		}{
			{"coverage", want.Coverage, have.Coverage}, {"kernels", want.Kernels, have.Kernels},
			{"phases", want.Phases, have.Phases},
			{"cells", want.Cells, have.Cells}, {"experts", want.Experts, have.Experts},
			{"imbalance", want.Imbalance, have.Imbalance},
			{"stragglers", want.Stragglers, have.Stragglers},
		} {
			if a, b := mustJSON(t, part.want), mustJSON(t, part.have); a != b {
				t.Errorf("%s differ:\n%.300s\n%.300s", part.what, a, b)
			}
		}
		equal(t, "rank", have.Ranks[0].Rank, 2)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Any bytes: an error or a consistent trace.
func FuzzTorchTrace(f *testing.F) {
	for _, path := range torchRanks {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Add([]byte(`[{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":2,"args":{"graph node id":3}}]`))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "trace.json")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		rec, err := capture.Read(context.Background(), path, capture.Options{})
		if err != nil {
			return
		}
		patterns, err := ranges.NewPatterns()
		if err != nil {
			t.Fatal(err)
		}
		d, err := summarizeRecording("x", rec, Options{Patterns: patterns})
		if err != nil {
			return
		}
		if trace, err := reduce([]*exportSummary{d}, Options{}); err == nil {
			checkConsistent(t, trace)
		}
	})
}
