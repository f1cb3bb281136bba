package workload

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
)

func TestProductEqualsNestedLoops(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, dim := range [][3]int{{1, 1, 1}, {3, 5, 7}, {64, 192, 10}, {65, 193, 33}, {130, 400, 3}} {
		rows, columns, inner := dim[0], dim[1], dim[2]
		x, w := uniform(rng, rows*inner, 1), uniform(rng, columns*inner, 1)
		out := make([]float32, rows*columns)
		product(out, x, w, rows, columns, inner)
		for i := range rows {
			for j := range columns {
				var want float64
				for k := range inner {
					want += float64(x[i*inner+k]) * float64(w[j*inner+k])
				}
				if d := math.Abs(float64(out[i*columns+j]) - want); d > 1e-4 {
					t.Fatalf("%v: element %d, %d is %v, want %v", dim, i, j, out[i*columns+j], want)
				}
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
