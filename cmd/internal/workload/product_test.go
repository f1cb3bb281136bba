package workload

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
)

func TestProductEqualsNestedLoops(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, dim := range [][2]int{{1, 1}, {5, 7}, {192, 10}, {193, 33}, {400, 3}} {
		x, w := normal(rng, dim[1], 1), normal(rng, dim[0]*dim[1], 1)
		out := make([]float32, dim[0])
		product(out, x, w)
		for j := range out {
			var want float64
			for k, v := range x {
				want += float64(v) * float64(w[j*dim[1]+k])
			}
			if d := math.Abs(float64(out[j]) - want); d > 1e-4 {
				t.Fatalf("%v: element %d is %v, want %v", dim, j, out[j], want)
			}
		}
	}
}

func TestNoRankPassesAPhaseEarly(t *testing.T) {
	const parties, rounds = 5, 200
	l := &Engine{ranks: make([]*rank, parties)}
	var arrived atomic.Int64
	for round := range rounds {
		l.together(func(*rank) { arrived.Add(1) })
		if n := arrived.Load(); n != int64(parties*(round+1)) {
			t.Fatalf("round %d: passed after %d arrivals, want %d", round, n, parties*(round+1))
		}
	}
}
