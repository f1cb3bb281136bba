package imbalance

import (
	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// Spread is a time per step over the steps that count, in nanoseconds. Percentiles are
// nearest ranks (stats.Percentile): P99NS of fewer than 100 steps is the largest. All are
// undefined without a step, and where a step has no such time.
type Spread struct {
	Steps  int           `json:"steps"` // that have the time
	MeanNS router.Number `json:"mean_ns"`
	P50NS  router.Number `json:"p50_ns"`
	P99NS  router.Number `json:"p99_ns"`
}

// SpreadOf takes the values step by step.
func SpreadOf(steps []float64) Spread {
	return Spread{len(steps), router.Number(stat.Mean(steps, nil)), router.Number(stats.Percentile(steps, 50)), router.Number(stats.Percentile(steps, 99))}
}

// OverSteps is how the steps that count differ: users of decoding feel the worst one.
type OverSteps struct {
	// Step is the wall time of a step, from its first kernel to that of the next step,
	// mean over ranks. The last step has none, unless it is the only one: then it ends
	// with its last kernel.
	Step Spread `json:"step"`
	// Experts is the expert time (see Times.Of) of the slowest rank of each layer,
	// added over layers; Loss is the straggler loss of all compute, likewise. Undefined
	// for one rank.
	Experts Spread `json:"experts"`
	Loss    Spread `json:"loss"`
}

// OverSteps takes the wall time of each step that has one.
func (t *Times) OverSteps(wall map[router.Whole]float64) OverSteps {
	var walls, experts []float64
	for _, s := range t.Steps {
		if s.Excluded != Counts {
			continue
		}
		experts = append(experts, s.SlowestExpertsNS.Float64())
		if ns, ok := wall[s.Number]; ok {
			walls = append(walls, ns)
		}
	}
	return OverSteps{SpreadOf(walls), SpreadOf(experts), SpreadOf(t.Loss())}
}

// Bound is what even expert time over ranks wins by itself, from one arm alone: the
// straggler loss of expert time, if every rank of a layer took the mean. It is inferred:
// no step with balanced routing was measured, and experts of equal size may also run
// faster, which it does not hold.
type Bound struct {
	// Gain is loss/(step − loss), the throughput that a step without the loss would win, a
	// fraction: router.GainBound with f = slowest/step and b = mean/slowest expert time.
	Gain   router.Number `json:"gain"`
	LossNS router.Number `json:"loss_ns"` // Σ over layers of max − mean over ranks, mean over steps
	StepNS router.Number `json:"step_ns"` // wall time of a step under the profiler, mean over steps
	Of     Of            `json:"of"`
}

// Bound is undefined for one rank, and where no layer is named: busy ranks of different
// layers cancel.
func (t *Times) Bound(over OverSteps) Bound {
	b := Bound{Gain: router.Undefined(), LossNS: router.Undefined(), StepNS: over.Step.MeanNS, Of: t.Of}
	if len(t.Ranks) < 2 || t.Unmarked || len(t.Layers) == 0 || !t.Layers[len(t.Layers)-1].Number.Defined() {
		return b
	}
	b.LossNS = 0
	var slowest router.Number
	for _, l := range t.Judged() {
		if loss, mean := lossAndMean(l.Experts); loss.Defined() {
			b.LossNS, slowest = b.LossNS+loss, slowest+loss+mean
		}
	}
	if slowest == 0 { // no layer has expert time on several ranks
		b.LossNS = router.Undefined()
		return b
	}
	b.Gain = router.GainBound(float64(slowest/b.StepNS), float64((slowest-b.LossNS)/slowest))
	return b
}
