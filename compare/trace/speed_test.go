package trace

import (
	"math"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// Rank 1 takes 1.3 and 1.031 times as long as the mean, or as long as healthy ranks do. With 1.2 of the tokens it may
// take longer by as much, and no more.
func TestSlowGPU(t *testing.T) {
	for _, c := range []struct {
		speeds, tokens []float64
		by             float64
		ok             bool
	}{
		{[]float64{0.7, 1.3}, nil, 1.3/0.7 - 1, true},
		{[]float64{0.99, 1.03, 0.99, 0.99}, nil, 1.03/0.99 - 1, true},
		{[]float64{0.971, 1.029}, nil, 1.029/0.971 - 1, false},
		{[]float64{1}, nil, 0, false},
		{[]float64{0.8, 1.2}, []float64{80, 120}, 0, false},
		{[]float64{0.72, 1.28}, []float64{80, 120}, 1.28/1.2/(2-1.28/1.2) - 1, true},
	} {
		trace := &Trace{}
		if c.tokens != nil {
			trace.Attention = &Attention{Tokens: c.tokens}
		}
		for rank, s := range c.speeds {
			trace.Speeds = append(trace.Speeds, Speed{rank, router.Number(s)})
		}
		rank, by, ok := trace.SlowGPU()
		if ok != c.ok || ok && rank != 1 || math.Abs(float64(by)-c.by) > 1e-9 {
			t.Errorf("%v: rank %d by %v, %t", c.speeds, rank, by, ok)
		}
	}
}
