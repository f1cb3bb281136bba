package plots

import (
	"fmt"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// small is a trace of 2 ranks, steps 5 and 6 and 4 experts in layers 1 and 2, two per rank. Expert e took e + 1 µs
// in layer 1 and twice that in layer 2, over both steps.
func small() *trace.Trace {
	t := &trace.Trace{Ranks: []trace.Rank{{Rank: 0}, {Rank: 1}}}
	for _, step := range []router.OptInt{5, 6} {
		t.Cells = append(t.Cells, trace.Cell{Step: step, Layer: 1, Phase: trace.PhaseExperts,
			Sum: imbalance.Sum{TotalNS: 10_000}})
	}
	for layer := router.OptInt(1); layer <= 2; layer++ {
		for e := range 4 {
			t.Experts = append(t.Experts, trace.ExpertStat{Rank: e / 2, Layer: layer, Expert: e, Basis: imbalance.Observed,
				Stats: trace.Stats{TotalNS: int64(1000*(e+1)) * int64(layer)}})
		}
	}
	// 2 layers · (4−3) µs of dispatch and 6 µs of collectives per rank and step: 4.5 waiting, 1.5 transferring.
	for rank := range 2 {
		t.RankSteps = append(t.RankSteps, trace.RankStep{Rank: rank, CollectiveNS: 6000, WaitNS: 4500, TransferNS: 1500,
			WorkNS: map[trace.Phase]router.Number{trace.PhaseDispatch: 2000, trace.PhaseExperts: 40000}})
	}
	return t
}

func TestExpertHeat(t *testing.T) {
	perfect := small()
	perfect.Experts = perfect.Experts[1:] // expert 0 of layer 1 was never seen
	s := ExpertTimes(Arm{"normal", small()}, Arm{"perfect", perfect})
	checkValues(t, "layer 2 per step", s.Grids[0].Values[1], []float64{1000, 2000, 3000, 4000})
	checkValues(t, "layer 1 without expert 0", s.Grids[1].Values[0], []float64{nan, 1000, 1500, 2000})
	if !strings.Contains(s.Caption, "observed") {
		t.Errorf("caption %q does not say how the times came about", s.Caption)
	}
	copied := perfect.Experts[0] // on another rank, which counts with it
	copied.Basis = imbalance.Allocated
	perfect.Experts = append(perfect.Experts, copied)
	s = ExpertTimes(Arm{"perfect", perfect})
	checkValues(t, "layer 1", s.Grids[0].Values[0], []float64{nan, 2000, 1500, 2000})
	if !strings.Contains(s.Caption, "allocated") {
		t.Errorf("caption %q hides that some times are allocated", s.Caption)
	}
}

// The work of a rank, of 2 layers · (4−3) µs of dispatch per step, comes before its collectives;
// where nothing is replayed, they are one part.
func TestPhaseTimes(t *testing.T) {
	unknown, lacking := small(), small()
	for i := range unknown.RankSteps {
		unknown.RankSteps[i].WaitNS = router.Undefined()
	}
	lacking.RankSteps = lacking.RankSteps[1:]
	for want, of := range map[string]*trace.Trace{
		"rank 0 [{dispatch 2000} {experts 40000} {transfer 1500} {waiting in collectives 4500}]": small(),
		"rank 0 [{dispatch 2000} {experts 40000} {collectives, waiting included 6000}]":          unknown,
		"rank 0 []": lacking,
	} {
		bar := PhaseTimes(Arm{"normal", of}).Arms[0].Bars[0]
		if have := fmt.Sprint(bar.Name, " ", bar.parts); have != want {
			t.Errorf("%s, want %s", have, want)
		}
	}
}

func checkValues(t *testing.T, name string, got, want []float64) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) { // NaN too
		t.Errorf("%s: %v, want %v", name, got, want)
	}
}
