package trace

import (
	"math"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// Rank 1 takes 1.3 and 1.031 times as long as the mean, or as long as healthy ranks do. With 1.2 of the tokens it may
// take longer by as much, and no more. Where others are as slow as the slowest one, to 1 %, all of them are.
func TestSlowGPUs(t *testing.T) {
	for _, c := range []struct {
		speeds, tokens []float64
		by             float64
		slow           []int
	}{
		{[]float64{0.7, 1.3}, nil, 1.3/0.7 - 1, []int{1}},
		{[]float64{0.99, 1.03, 0.99, 0.99}, nil, 1.03/0.99 - 1, []int{1}},
		{[]float64{0.971, 1.029}, nil, 0, nil},
		{[]float64{1}, nil, 0, nil},
		{[]float64{0.8, 1.2}, []float64{80, 120}, 0, nil},
		{[]float64{0.72, 1.28}, []float64{80, 120}, 1.28/1.2/(2-1.28/1.2) - 1, []int{1}},
		{[]float64{1.1, 1.095, 0.9, 0.905}, nil, 2.195/1.805 - 1, []int{0, 1}},
		{[]float64{1.05, 0.85, 1.05, 1.05}, nil, 1.05/0.85 - 1, []int{0, 2, 3}},
		{[]float64{1.1, 1.08, 0.92, 0.9}, nil, 1.1*3/2.9 - 1, []int{0}},
	} {
		trace := &Trace{}
		if c.tokens != nil {
			trace.Attention = &Attention{Tokens: c.tokens}
		}
		for rank, s := range c.speeds {
			trace.Speeds = append(trace.Speeds, Speed{rank, router.Number(s)})
		}
		slow, by := trace.SlowGPUs()
		if !slices.Equal(slow, c.slow) || len(slow) > 0 && math.Abs(float64(by)-c.by) > 1e-9 {
			t.Errorf("%v: ranks %d by %v", c.speeds, slow, by)
		}
	}
}
