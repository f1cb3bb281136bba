package perstep

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

func TestFit(t *testing.T) {
	for _, c := range []struct {
		what         string
		slots, times []float64
	}{
		{"equal loads", []float64{5, 5, 5}, []float64{1, 2, 3}},
		{"equal times", []float64{1, 2, 3}, []float64{5, 5, 5}},
		{"two points", []float64{1, 2}, []float64{1, 2}},
	} {
		if f := fit(c.slots, c.times); !math.IsNaN(f.SlopeNS) || !math.IsNaN(f.R2) {
			t.Errorf("%s have no line, have %+v", c.what, f)
		}
	}
	if f := fit([]float64{1, 2, 3}, []float64{3, 5, 7}); math.Abs(f.SlopeNS-2) > 1e-12 ||
		math.Abs(f.InterceptNS-1) > 1e-12 || math.Abs(f.R2-1) > 1e-12 {
		t.Errorf("3, 5, 7 is 1 + 2x, have %+v", f)
	}
}

// Of four steps, one holds 70 of 100 ns in collectives; of two, none is the longest.
func TestLongestCollectives(t *testing.T) {
	trace := &nsys.Trace{}
	for step, ns := range []int64{10, 70, 10, 10} {
		for rank := range 2 {
			trace.Cells = append(trace.Cells, nsys.Cell{Rank: rank, Step: router.OptInt(step), Layer: 0,
				Phase: nsys.PhaseCombine, TotalNS: ns, CollectiveNS: ns, BusyNS: 10})
		}
	}
	if step, share := Of(trace).LongestCollectives(); step != 1 || share != 0.7 {
		t.Errorf("step %d with %v, want step 1 with 0.7", step, share)
	}
	trace.Cells = trace.Cells[:4]
	if step, share := Of(trace).LongestCollectives(); step.Defined() || share.Defined() {
		t.Errorf("of two steps: %d with %v", step, share)
	}
}

// Steps 2 to 5 count. The waiting in them was worked out outside the program from the rows of
// the collectives, clocks aligned by their ends, in ms per step; over all steps it is 15.8
// on average. That rank 1's GPU runs no kernel for 20.5 of 35.9 ms too.
func TestWaitingInTheStepsThatCount(t *testing.T) {
	paths, _ := filepath.Glob("../../../testdata/vllm/qwen3-normal.rank?.json.gz")
	trace, err := nsys.Read(t.Context(), paths, nsys.Options{Threshold: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	byRank := Of(trace).Phases()
	for r, want := range []struct{ wait, transfer float64 }{{19.6115, 4.0559}, {0, 4.1703}, {15.0987, 4.0749},
		{19.6640, 3.9629}} {
		if p := byRank[r]; math.Abs(p.Wait/1e6-want.wait) > 0.001 || math.Abs(p.Transfer/1e6-want.transfer) > 0.001 {
			t.Errorf("rank %d waits %.4f ms and transfers %.4f, want %v", r, p.Wait/1e6, p.Transfer/1e6, want)
		}
	}
	if idle := trace.Idle[1]; idle.Rank != 1 || idle.Steps != 4 ||
		math.Abs(float64(idle.NoKernelNS/idle.WallNS)-20.478/35.937) > 0.005 {
		t.Errorf("have %+v", idle)
	}
}

// Ranges name the layers of vLLM's prefill steps, of which the answer is; those of the decode steps
// are inferred beside them.
func TestInferred(t *testing.T) {
	paths, _ := filepath.Glob("../../../testdata/field/results/vllm-two-h100/rank?.json.gz")
	for _, c := range []struct {
		steps *nsys.Steps
		want  bool
	}{{nil, false}, {&nsys.Steps{First: 201, Last: 204}, true}} {
		trace, err := nsys.Read(t.Context(), paths, nsys.Options{Threshold: 0.1, Steps: c.steps})
		if err != nil {
			t.Fatal(err)
		}
		if Of(trace).Inferred() != c.want {
			t.Errorf("steps %v: inferred %t", c.steps, !c.want)
		}
	}
}
