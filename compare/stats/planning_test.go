package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// By hand: (t₀.₉₇₅ + z₀.₈)/√n ≤ 0.5 first at n = 34: (2.0369 + 0.8416)/√34 = 0.4937, and
// (2.0395 + 0.8416)/√33 = 0.5015.
func TestToDecideByHand(t *testing.T) {
	if n, ok := ToDecide(0.5, 1, 0.95, 6, 2); !ok || n != 34 {
		t.Errorf("have %d %v, want 34", n, ok)
	}
	if n, ok := ToDecide(1, 0, 0.95, 6, 2); !ok || n != 6 {
		t.Errorf("no noise: have %d %v, want the 6 pairs that any interval needs", n, ok)
	}
	for _, bad := range [][2]float64{{0, 1}, {1, -1}, {1, math.NaN()}, {math.NaN(), 1}, {1e-9, 1}, {1, math.Inf(1)}} {
		if n, ok := ToDecide(bad[0], bad[1], 0.95, 6, 2); ok {
			t.Errorf("%v: have %d, want none", bad, n)
		}
	}
}

// The planned number must really decide about as often as it says.
func TestToDecide(t *testing.T) {
	const effect, sd = 0.1, 0.15
	n, ok := ToDecide(-effect, sd, 0.95, 6, 2)
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
		if !contains(Crossover(0.95, d[:n/2], d[n/2:]), 0) {
			decided++
		}
	}
	checkNear(t, "share decided", float64(decided)/trials, power, 0.04)
	more, _ := ToDecide(effect/2, sd, 0.95, 6, 2)
	if more <= n {
		t.Errorf("half the distance needs %d pairs, the whole %d", more, n)
	}
}
