package trace

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

var torchRanks = []string{filepath.Join(testdata, "torch/rank0.pt.trace.json"),
	filepath.Join(testdata, "torch/rank1.pt.trace.json.gz")}

// The fixtures are two ranks of one step. Layer 3: gate 5.125 µs; experts 30 µs on
// rank 0 and 10 µs on rank 1, so max/mean is 30/20; an all-to-all that rank 0
// enters 20 µs after rank 1 and both leave together. 8 and 2 µs nowhere, as their
// launch is not recorded.
func TestTorchTraceByHand(t *testing.T) {
	trace := mustRead(t, Options{Threshold: 0.1}, torchRanks...)
	equal(t, "ranks", len(trace.Ranks), 2)
	equal(t, "evidence", trace.Ranks[1].Evidence, "distributedInfo")
	equal(t, "process", trace.Ranks[1].PID, 5200)
	equal(t, "format", trace.Exports[0].SchemaVersion, "PyTorch profiler 1")
	equal(t, "kernels", trace.Exports[0].Kernels, 5)
	equal(t, "API calls", trace.Exports[0].Launches, 4)
	equal(t, "gpu time", trace.Coverage.GPUNS, 2*(5125+8000+2000)+30000+10000+60000+80000)
	require.Near(t, "launch share", trace.Coverage.LaunchShare,
		float64(2*5125+30000+10000+60000+80000)/float64(trace.Coverage.GPUNS), 1e-6)
	equal(t, "gate", phaseTime(trace, 0, 3, PhaseRouter), 5125)
	equal(t, "placed by its name alone", phaseTime(trace, 0, NoID, PhaseExperts), 8000+2000)
	require.Near(t, "max/mean of layer 3", trace.Imbalance[0].MaxOverMean, 1.5, 1e-6)
	for rank, wait := range []router.Number{0, 20000} {
		equal(t, "wait", trace.RankSteps[rank].WaitNS, wait)
		equal(t, "transfer", trace.RankSteps[rank].TransferNS, 60000)
	}
	for _, c := range trace.Cells {
		if c.Layer == 3 && c.Step != 7 {
			t.Errorf("want step 7, have %+v", c)
		}
	}
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
		require.NoError(t, os.WriteFile(path, content, 0o600))
		rec, err := capture.Read(context.Background(), path, nil)
		if err != nil {
			return
		}
		patterns := require.Value(ranges.NewPatterns())
		d, err := summarizeRecording("x", rec, Options{Patterns: patterns})
		if err != nil {
			return
		}
		if trace, err := reduce([]*exportSummary{d}, Options{}); err == nil {
			checkConsistent(t, trace)
		}
	})
}
