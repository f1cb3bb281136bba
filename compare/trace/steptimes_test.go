package trace

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// A pause behind one step is no step's time; one that most have behind them is. Of two steps nobody knows.
func TestStepHasNoPause(t *testing.T) {
	for name, c := range map[string]struct {
		idle []router.Number // behind 70, 72, 74 … ns of kernels
		want float64
	}{
		"a pause":   {[]router.Number{32, 30, 4926, 34}, 73 + 33},
		"pauses":    {[]router.Number{30, 430, 4926, 430}, 73 + 430},
		"two steps": {[]router.Number{30, 128}, 150},
		"no step":   {nil, math.NaN()},
	} {
		trace, times := Trace{}, imbalance.Times{}
		for i, idle := range append(slices.Clone(c.idle), router.Undefined()) {
			step := router.OptInt(i)
			times.Steps = append(times.Steps, imbalance.Step{Number: step})
			trace.StepTimes = append(trace.StepTimes, StepTime{Step: step, WallNS: 70 + 2*router.Number(i) + idle,
				NoKernelNS: idle})
		}
		require.Near(t, name, trace.StepNS(&times), c.want, 1e-6)
	}
}

// Of rank 1's GPU a second stream takes a part: its kernels, launched by the host for the next step, run long before
// that. Without a profiler steps take 80.8 and 76.1 ms, and kernels that run side by side count once: rank 1 runs 98.4
// ms of them in 80.3.
func TestSecondStream(t *testing.T) {
	for arm, want := range map[string]float64{"normal": 80.8e6, "perfect": 76.1e6} {
		paths, _ := filepath.Glob("../../testdata/field/results/vllm-two-h200-quantized/mxfp4-marlin/slow-gpu-" + arm + "/*.gz")
		trace := mustRead(t, Options{}, paths...)
		if step := float64(trace.Bound.StepNS); math.Abs(step/want-1) > 0.03 {
			t.Errorf("%s: a step of %v ns", arm, step)
		}
		for _, rank := range trace.RankSteps {
			ns := float64(rank.CollectiveNS + rank.NoKernelNS)
			for _, work := range rank.WorkNS {
				ns += float64(work)
			}
			if rank.NoKernelNS < 0 || math.Abs(ns/want-1) > 0.035 {
				t.Errorf("%s: %v ns, %+v", arm, ns, rank)
			}
		}
	}
}

// Steps 2 to 5 count. The waiting in them was worked out outside the program from the rows of
// the collectives, clocks aligned by their ends in each step, in ms per step; over all steps it is
// 15.8 on average. That rank 1's GPU runs no kernel for 20.5 of 35.9 ms too.
func TestWaitingInTheStepsThatCount(t *testing.T) {
	paths, _ := filepath.Glob("../../testdata/vllm/qwen3-normal.rank?.json.gz")
	trace := require.Value(Read(t.Context(), paths, Options{Threshold: 0.1}))
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
