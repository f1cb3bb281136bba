package trace

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/imbalance"
)

// Where one kernel exchanges tokens and runs the experts, steps and layers are found, and
// no imbalance of time, which would be imbalance of waiting: ranks end such a kernel together.
func TestFusedExpertsHaveNoImbalanceOfTime(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	for _, e := range enginesOf(t) {
		m := model{layers: 6, steps: 4, first: 1, fused: true}
		trace := changedAgain(t, e.paths[:2], e.list, func(rank int, rec *capture.Recording) {
			maker := maker{model: m, parts: e.ranks[rank], load: slices.Repeat([]float64{1}, m.layers),
				random: rand.New(rand.NewPCG(1, 2)), noise: rand.New(rand.NewPCG(1, uint64(rank)))}
			*rec = *record(rec, maker.make())
		})
		equal(t, e.name+": layers", int(trace.Structure.Layers), m.layers)
		equal(t, e.name+": steps", int(trace.Structure.Steps), m.steps)
		equal(t, e.name+": doubt", trace.Undecided().Code, FusedExperts)
		if slices.ContainsFunc(trace.Imbalance, func(r imbalance.Row) bool { return r.Quantity == imbalance.Time }) ||
			trace.Bound.LossNS.Defined() || trace.Bound.Estimate.Defined() {
			t.Errorf("%s: have %+v, %+v", e.name, trace.Imbalance, trace.Bound)
		}
		if len(trace.StepTimes) < m.steps-1 || !trace.Bound.StepNS.Defined() {
			t.Errorf("%s: %+v", e.name, trace.StepTimes)
		}
	}
}
