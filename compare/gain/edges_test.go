package gain

import (
	"math"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// A build is slower from the loss that undoes the threshold: 1/1.1 − 1 = −9.1 % for 10 %.
func TestSlowerThanTheThreshold(t *testing.T) {
	for high, want := range map[float64]Verdict{-0.092: Slower, -0.090: Inconclusive} {
		r := Result{Threshold: 0.1, Arms: []ArmGain{{Name: "before"}, {Name: "after"}}}
		r.Gain.Low, r.Gain.High, r.Gain.N = -0.099, router.Number(high), 6
		if have := r.decide(6); have != want {
			t.Errorf("up to %v: %q, want %q", high, have, want)
		}
	}
}

// One pair of unknown order, and the effect of the order cannot be taken out.
func TestAnyUnknownOrder(t *testing.T) {
	l := logGains{normalFirst: []float64{0.1, 0.11}, perfectFirst: []float64{0.12, 0.13}}
	if g := l.gain(0.95); g.Method != CrossoverT || g.N != 4 {
		t.Errorf("known orders by %s of %d", g.Method, g.N)
	}
	l.unknown = []float64{0.14}
	if g := l.gain(0.95); g.Method != PairedT || g.N != 5 || math.Abs(math.Log1p(g.Estimate.Float64())-0.12) > 1e-12 {
		t.Errorf("an unknown order by %s of %d: %v", g.Method, g.N, g.Estimate)
	}
}

func TestStepTimeInNanoseconds(t *testing.T) {
	if ns := (Metric{Name: "step_time_mean", Unit: "ms"}).StepNS(2.5, 0); ns != 2.5e6 {
		t.Errorf("2.5 ms are %v ns", ns)
	}
}
