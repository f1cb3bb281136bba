package stats

import (
	"math"
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
	for _, bad := range [][2]float64{{0, 1}, {1, math.NaN()}, {math.NaN(), 1}, {1e-9, 1}, {1, math.Inf(1)}} {
		if n, ok := ToDecide(bad[0], bad[1], 0.95, 6, 2); ok {
			t.Errorf("%v: have %d, want none", bad, n)
		}
	}
}
