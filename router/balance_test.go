package router

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

// Slots 2, 4, 6, 0 on four ranks: total 12, mean 3, max 6.
//
//	max/mean 2, mean/max 0.5
func TestBalanceByHand(t *testing.T) {
	if b, want := BalanceOf([]int64{2, 4, 6, 0}), (Balance{4, 12, 6, 2, 1, 0.5, 3, 2}); b != want {
		t.Errorf("%+v, want %+v", b, want)
	}
	for _, b := range []Balance{BalanceOf([]int64{}), BalanceOf([]int64{0, 0, 0})} {
		if b.MaxOverMean.Defined() || b.Imbalance.Defined() || b.Balancedness.Defined() {
			t.Errorf("nothing has a balance: %+v", b)
		}
	}
}

// Renaming the experts permutes the parts and leaves every number alone;
// scaling the load leaves every ratio alone.
func TestBalanceLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		parts := make([]float64, 1+r.IntN(40))
		for i := range parts {
			parts[i] = float64(r.IntN(1000))
		}
		parts[0]++
		b := BalanceOf(parts)
		if b.MaxOverMean < 1-1e-12 || float64(b.MaxOverMean) > float64(len(parts))+1e-9 {
			t.Fatalf("out of range: %+v", b)
		}
		if f := Floor(int64(b.Total), len(parts)); f > b.MaxOverMean+1e-12 {
			t.Fatalf("floor %v above max/mean %v", f, b.MaxOverMean)
		}
		scaled := make([]float64, len(parts))
		for i, p := range r.Perm(len(parts)) {
			scaled[p] = 3 * parts[i]
		}
		s := BalanceOf(scaled)
		require.Near(t, "max/mean", s.MaxOverMean, float64(b.MaxOverMean), 1e-12)
	}
}

func TestFloor(t *testing.T) {
	require.Near(t, "2 slots over 16 experts", Floor(2, 16), 8, 1e-12)
	require.Near(t, "divides", Floor(64, 8), 1, 1e-12)
	require.Near(t, "65 over 8", Floor(65, 8), 9*8.0/65, 1e-12)
	if Floor(0, 4).Defined() || Floor(4, 0).Defined() {
		t.Errorf("floors of nothing: %v, %v", Floor(0, 4), Floor(4, 0))
	}
}

func TestNumberRoundTrip(t *testing.T) {
	for _, n := range []Number{0, -1.5, 1.0 / 3, Undefined(), Number(math.Inf(1))} {
		text := require.Value(json.Marshal(n))
		var back Number = 42
		require.NoError(t, json.Unmarshal(text, &back))
		if n.Defined() != back.Defined() || n.Defined() && n != back {
			t.Errorf("%v became %s became %v", float64(n), text, float64(back))
		}
	}
}
