package capture

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Ids that are dense, sparse, clustered, negative or at the ends of 64 bits are
// found where they are, and no others.
func TestCorrelationsFind(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	sets := [][]int64{{0}, {-5, 7}, {math.MinInt64 + 1, 0, math.MaxInt64}, {math.MaxInt64 - 1, math.MaxInt64}}
	for range 50 {
		var ids []int64
		at := rng.Int64N(1000) - 500
		for range 1 + rng.IntN(200) {
			at += 1 + rng.Int64N(1<<rng.IntN(20))
			ids = append(ids, at)
		}
		sets = append(sets, ids)
	}
	for _, ids := range sets {
		c := &processCorrelations{ids: ids, first: 1000}
		c.index()
		if len(c.blocks) > 2*len(ids)+2 {
			t.Fatalf("%d blocks for %d ids", len(c.blocks), len(ids))
		}
		probes := slices.Concat(ids, []int64{ids[0] - 1, ids[len(ids)-1] + 1, 0, math.MinInt64, math.MaxInt64})
		for _, id := range ids {
			probes = append(probes, id+1, id-1)
		}
		for _, id := range probes {
			want := int32(slices.Index(ids, id))
			if want >= 0 {
				want += 1000
			}
			if got := c.find(id); got != want {
				t.Fatalf("%d in %v: want %d, have %d", id, ids, want, got)
			}
		}
	}
}
