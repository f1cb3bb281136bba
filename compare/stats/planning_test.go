package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestPWithin(t *testing.T) {
	// mean 0.025, sd² = 0.3/7 (Σd² = 0.305, minus 8·0.025²), se = 0.0731925;
	// the nearer margin is 0.975 away: t = 13.3211 with 7 df, p = 1.6e-6.
	d := []float64{-0.2, 0.1, 0.3, -0.1, 0.2, 0.05, -0.3, 0.15}
	e := PairedT(d, 0.90)
	checkNear(t, "p", e.PWithin(-1, 1), studentsT(7).Survival(0.975/math.Sqrt(0.3/7/8)), 1e-12)
	// Rejecting at α is the 1−2α interval lying inside the margins.
	for _, margin := range []float64{0.05, 0.12, 0.17, 0.2, 0.3} {
		inside := -margin < e.Low && e.High < margin
		if p := e.PWithin(-margin, margin); (p < 0.05) != inside {
			t.Errorf("margin %g: p %g but 90 %% interval %g to %g", margin, p, e.Low, e.High)
		}
	}
	checkNaN(t, "margins crossed", e.PWithin(1, -1), PairedT(nil, 0.9).PWithin(-1, 1))
}

// With even chances it is the half-width itself that reaches the threshold.
func TestToDecideEvenly(t *testing.T) {
	// t₀.₉₇₅ of 16 degrees of freedom at n=18: 2.1199/√18 = 0.49967; of 15 at n=17:
	// 2.1314/√17 = 0.5169.
	n, ok := ToDecide(0.5, 1, 0.95, 0.5, 6, 2)
	if !ok || n != 18 {
		t.Errorf("have %d %v, want 18", n, ok)
	}
	if n, ok := ToDecide(1, 0, 0.95, 0.5, 6, 2); !ok || n != 6 {
		t.Errorf("no noise: have %d %v, want the 6 pairs that any interval needs", n, ok)
	}
	for _, bad := range [][3]float64{{0, 1, 0.95}, {1, -1, 0.95}, {1, math.NaN(), 0.95}, {1, 1, 1},
		{1, 1, 0}, {1, 0, 2}, {1, 0, math.NaN()}, {1e-9, 1, 0.95}, {1, math.Inf(1), 0.95}} {
		if n, ok := ToDecide(bad[0], bad[1], bad[2], 0.5, 6, 2); ok {
			t.Errorf("%v: have %d, want none", bad, n)
		}
	}
}

// The planned number must really decide about as often as it says.
func TestToDecide(t *testing.T) {
	const effect, sd, power = 0.1, 0.15, 0.8
	n, ok := ToDecide(-effect, sd, 0.95, power, 6, 2)
	if !ok {
		t.Fatal("want a number")
	}
	rng := rand.New(rand.NewPCG(5, 1))
	decided := 0
	const trials = 2000
	d := make([]float64, n)
	for range trials {
		for i := range d {
			d[i] = effect + sd*rng.NormFloat64()
		}
		if !contains(Crossover(0.95, d[:n/2], d[n/2:]).Interval, 0) {
			decided++
		}
	}
	checkNear(t, "share decided", float64(decided)/trials, power, 0.04)
	for _, p := range []float64{0.4, 1, math.NaN()} {
		if _, ok := ToDecide(1, 1, 0.95, p, 6, 2); ok {
			t.Errorf("power %g: want none", p)
		}
	}
	if _, ok := ToDecide(0, 1, 0.95, 0.8, 6, 2); ok {
		t.Error("on the threshold: want none")
	}
	more, _ := ToDecide(effect/2, sd, 0.95, power, 6, 2)
	if more <= n {
		t.Errorf("half the distance needs %d pairs, the whole %d", more, n)
	}
}

func TestMinPairs(t *testing.T) {
	for confidence, want := range map[float64]int{0.5: 2, 0.9: 5, 0.95: 6, 0.96875: 6, 0.97: 7, 0.99: 8, 0: 0, 1: 0} {
		if n := MinPairs(confidence); n != want {
			t.Errorf("MinPairs(%g): have %d, want %d", confidence, n, want)
		}
	}
}
