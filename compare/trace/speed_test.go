package trace

import (
	"math"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// Rank 1 takes 1.3 and 1.031 times as long as the mean, or as long as healthy ranks do.
func TestSlowGPU(t *testing.T) {
	for _, c := range []struct {
		speeds []float64
		by     float64
		ok     bool
	}{
		{[]float64{0.7, 1.3}, 1.3/0.7 - 1, true},
		{[]float64{0.99, 1.03, 0.99, 0.99}, 1.03/0.99 - 1, true},
		{[]float64{0.971, 1.029}, 1.029/0.971 - 1, false},
		{[]float64{1}, 0, false},
	} {
		trace := &Trace{}
		for rank, s := range c.speeds {
			trace.Speeds = append(trace.Speeds, Speed{rank, router.Number(s)})
		}
		rank, by, ok := trace.SlowGPU()
		if ok != c.ok || ok && rank != 1 || math.Abs(float64(by)-c.by) > 1e-9 {
			t.Errorf("%v: rank %d by %v, %t", c.speeds, rank, by, ok)
		}
	}
}
