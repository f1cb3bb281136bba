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
	byRank := trace.RankPhases()
	for r, want := range []struct{ wait, transfer float64 }{{19.4990, 4.1684}, {0, 4.1703}, {15.0009, 4.1727},
		{19.4507, 4.1762}} {
		if p := byRank[r]; math.Abs(p.Wait/1e6-want.wait) > 0.001 || math.Abs(p.Transfer/1e6-want.transfer) > 0.001 {
			t.Errorf("rank %d waits %.4f ms and transfers %.4f, want %v", r, p.Wait/1e6, p.Transfer/1e6, want)
		}
	}
	if idle := trace.Idle[1]; idle.Rank != 1 || idle.Steps != 4 ||
		math.Abs(float64(idle.NoKernelNS/idle.WallNS)-20.478/35.937) > 0.005 {
		t.Errorf("have %+v", idle)
	}
}
