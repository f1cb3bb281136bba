package imbalance

import (
	"gonum.org/v1/gonum/floats"

	"github.com/moebalance/moebalance/router"
)

// Bound is what uneven expert time over ranks costs, from one arm alone. What even experts
// would gain is inferred: no step with balanced routing was measured, and experts of equal size
// may also run faster, which it does not hold.
type Bound struct {
	// Gain is the gain in throughput of even ranks, a fraction, and Low and High its interval: of
	// a replay, undefined where there is none.
	Gain   router.Number `json:"gain"`
	Low    router.Number `json:"gain_low"`
	High   router.Number `json:"gain_high"`
	LossNS router.Number `json:"loss_ns"` // Σ over layers of max − mean over ranks, mean over steps
	StepNS router.Number `json:"step_ns"` // of a step under the profiler, see Times.StepNS
	Steps  int           `json:"steps"`
	Of     Of            `json:"of"`
}

// Bound is undefined for one rank, and where no layer is named: busy ranks of different
// layers cancel.
func (t *Times) Bound(stepNS router.Number) Bound {
	none := router.Undefined()
	b := Bound{Gain: none, Low: none, High: none, LossNS: none, StepNS: stepNS, Steps: len(t.StepsOf(Counts)), Of: t.Of}
	if len(t.Ranks) < 2 || t.Unmarked || len(t.Layers) == 0 || !t.Layers[len(t.Layers)-1].Number.Defined() {
		return b
	}
	for _, l := range t.Judged() {
		switch loss := l.Loss(); {
		case !loss.Defined() || floats.Sum(l.Means()) == 0:
		case b.LossNS.Defined():
			b.LossNS += loss
		default:
			b.LossNS = loss
		}
	}
	return b
}
