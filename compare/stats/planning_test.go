package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestHolm(t *testing.T) {
	// Ascending 0.005·4, 0.01·3, 0.03·2, then 0.04·1 raised to 0.06.
	have := Holm([]float64{0.01, 0.04, 0.03, 0.005})
	for i, want := range []float64{0.03, 0.06, 0.06, 0.02} {
		checkNear(t, "adjusted", have[i], want, 1e-15)
	}
	// Undefined ones do not count; none exceeds 1; equal ones stay equal.
	have = Holm([]float64{math.NaN(), 0.6, 0.6})
	checkNaN(t, "undefined", have[0])
	checkNear(t, "capped", have[1], 1, 0)
	checkNear(t, "tied", have[2], 1, 0)
	if len(Holm(nil)) != 0 {
		t.Error("none: want none")
	}
	p := []float64{0.2, 0.1}
	Holm(p)
	if p[0] != 0.2 || p[1] != 0.1 {
		t.Error("the caller's values were changed")
	}
}

func TestTOST(t *testing.T) {
	// 8 differences, all inside ±1: both signed-rank sides have p = 1/2⁸.
	d := []float64{-0.2, 0.1, 0.3, -0.1, 0.2, 0.05, -0.3, 0.15}
	e := TOST(d, -1, 1)
	checkNear(t, "rank p", e.RankP, 1.0/256, 1e-15)
	// mean 0.025, sd² = 0.3/7 (Σd² = 0.305, minus 8·0.025²), se = 0.0731925;
	// the nearer margin is 0.975 away: t = 13.3211 with 7 df, p = 1.6e-6.
	checkNear(t, "t p", e.TP, studentsT(7).Survival(0.975/math.Sqrt(0.3/7/8)), 1e-12)
	// Rejecting at α is the 1−2α interval lying inside the margins.
	for _, margin := range []float64{0.05, 0.12, 0.17, 0.2, 0.3} {
		ci := PairedT(d, 0, 0.90)
		inside := -margin < ci.Low && ci.High < margin
		if p := TOST(d, -margin, margin).TP; (p < 0.05) != inside {
			t.Errorf("margin %g: p %g but 90 %% interval %g to %g", margin, p, ci.Low, ci.High)
		}
	}
	checkNaN(t, "margins crossed", TOST(d, 1, -1).TP, TOST(d, 1, 1).RankP)
	checkNaN(t, "no differences", TOST(nil, -1, 1).TP, TOST(nil, -1, 1).RankP)
}

func TestPairsForHalfWidth(t *testing.T) {
	// t₀.₉₇₅ at n=17: 2.1199·1/√(17·3/π) = 0.5262 > 0.5; n=18: 2.1098/√17.19 =
	// 0.5089; n=19: 2.1009/√18.14 = 0.4932.
	n, ok := PairsForHalfWidth(0.5, 1, 0.95)
	if !ok || n != 19 {
		t.Errorf("have %d %v, want 19", n, ok)
	}
	if n, ok := PairsForHalfWidth(1, 0, 0.95); !ok || n != 6 {
		t.Errorf("no noise: have %d %v, want the 6 pairs that any interval needs", n, ok)
	}
	for _, bad := range [][3]float64{{0, 1, 0.95}, {-1, 1, 0.95}, {1, -1, 0.95}, {1, math.NaN(), 0.95}, {1, 1, 1}, {1, 1, 0}, {1, 0, 2}, {1, 0, math.NaN()}, {1e-9, 1, 0.95}, {1, math.Inf(1), 0.95}} {
		if n, ok := PairsForHalfWidth(bad[0], bad[1], bad[2]); ok {
			t.Errorf("%v: have %d, want none", bad, n)
		}
	}
}

// The planned number must really decide about as often as it says.
func TestPairsToDecide(t *testing.T) {
	const effect, sd, power = 0.1, 0.15, 0.8
	n, ok := PairsToDecide(-effect, sd, 0.95, power)
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
		if !HodgesLehmann(d, 0.95).Contains(0) {
			decided++
		}
	}
	checkNear(t, "share decided", float64(decided)/trials, power, 0.04)
	even, ok := PairsToDecide(effect, sd, 0.95, 0.5)
	if half, _ := PairsForHalfWidth(effect, sd, 0.95); !ok || even != half {
		t.Errorf("with even chances %d pairs, for that half-width %d: want the same", even, half)
	}
	for _, p := range []float64{0.4, 1, math.NaN()} {
		if _, ok := PairsToDecide(1, 1, 0.95, p); ok {
			t.Errorf("power %g: want none", p)
		}
	}
	if _, ok := PairsToDecide(0, 1, 0.95, 0.8); ok {
		t.Error("on the threshold: want none")
	}
	more, _ := PairsToDecide(effect/2, sd, 0.95, power)
	if more <= n {
		t.Errorf("half the distance needs %d pairs, the whole %d", more, n)
	}
}
