package router

import (
	"encoding/json"
	"math"
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
