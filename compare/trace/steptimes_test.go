package trace

import (
	"math"
	"path/filepath"
	"testing"
)

// Steps 2 to 5 count. The waiting in them was worked out outside the program from the rows of
// the collectives, clocks aligned by their ends in each step, in ms per step; over all steps it is
// 15.8 on average. That rank 1's GPU runs no kernel for 20.5 of 35.9 ms too.
func TestWaitingInTheStepsThatCount(t *testing.T) {
	paths, _ := filepath.Glob("../../testdata/vllm/qwen3-normal.rank?.json.gz")
	trace, err := Read(t.Context(), paths, Options{Threshold: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	for r, want := range []struct{ wait, transfer float64 }{{19.4990, 4.1684}, {0, 4.1703}, {15.0009, 4.1727},
		{19.4507, 4.1762}} {
		if p := trace.RankSteps[r]; p.Rank != r || math.Abs(float64(p.WaitNS)/1e6-want.wait) > 0.001 ||
			math.Abs(float64(p.TransferNS)/1e6-want.transfer) > 0.001 {
			t.Errorf("have %+v, want %v", p, want)
		}
	}
	if idle := float64(trace.RankSteps[1].NoKernelNS) / 1e6; math.Abs(idle-20.478) > 0.2 {
		t.Errorf("rank 1 runs no kernel for %v ms", idle)
	}
}
