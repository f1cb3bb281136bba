package workload

import (
	"sync/atomic"
	"testing"
)

func TestNoRankPassesAPhaseEarly(t *testing.T) {
	const parties, rounds = 5, 200
	l := &Engine{ranks: make([]*rank, parties)}
	var arrived atomic.Int64
	for round := range rounds {
		l.each(func(*rank) { arrived.Add(1) })
		if n := arrived.Load(); n != int64(parties*(round+1)) {
			t.Fatalf("round %d: passed after %d arrivals, want %d", round, n, parties*(round+1))
		}
	}
}
