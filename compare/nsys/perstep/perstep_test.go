package perstep

import (
	"math"
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
	if f := fit([]float64{1, 2, 3}, []float64{3, 5, 7}); math.Abs(f.SlopeNS-2) > 1e-12 || math.Abs(f.InterceptNS-1) > 1e-12 || math.Abs(f.R2-1) > 1e-12 {
		t.Errorf("3, 5, 7 is 1 + 2x, have %+v", f)
	}
}

// Of four steps, one holds 70 of 100 ns in collectives; of two, none is the longest.
func TestLongestCollectives(t *testing.T) {
	trace := &nsys.Trace{}
	for step, ns := range []int64{10, 70, 10, 10} {
		for rank := range 2 {
			trace.Cells = append(trace.Cells, nsys.Cell{Rank: rank, Step: router.Whole(step), Layer: 0, Phase: nsys.PhaseCombine, TotalNS: ns, CollectiveNS: ns, BusyNS: 10})
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
