package router

import "testing"

func TestFlagged(t *testing.T) {
	none := Undefined()
	for _, c := range []struct {
		name          string
		m, floor, p95 Number
		threshold     float64
		want          bool
	}{
		{"below the threshold", 1.08, 1, 1.02, 0.10, false},
		{"exactly at the threshold", 1.1, 1, 1.02, 0.10, false}, // 1.1 − 1 is 0.10000000000000009
		{"one slot in a billion beyond the threshold", 1.100000001, 1, 1.02, 0.10, true},
		{"exactly at the threshold beyond the floor", 1.32, 1.2, 1.02, 0.10, false},
		{"all of it is the floor", 8, 8, 1.02, 0.10, false},                        // 1 token, top-2 of 16: 1·16/2 = 8
		{"less than the threshold beyond the floor", 1.30, 1.2, none, 0.10, false}, // 1.30/1.2 − 1 = 8.3 %
		{"more than the threshold beyond the floor", 1.35, 1.2, none, 0.10, true},  // 1.35/1.2 − 1 = 12.5 %
		{"chance does as much", 1.27, 1, 1.33, 0.10, false},
		{"chance does exactly as much", 1.27, 1, 1.27, 0.10, false},
		{"no null to compare with", 1.27, 1, none, 0.10, true},
		{"a time has no floor", 1.2, none, none, 0.10, true},
		{"nothing was measured", none, 1, 1, 0.10, false},
		{"a threshold of zero", 1.001, 1, none, 0, true},
	} {
		if got := Flagged(c.m, c.floor, c.p95, c.threshold); got != c.want {
			t.Errorf("%s: Flagged(%v, %v, %v, %v) = %v, want %v", c.name, c.m, c.floor, c.p95, c.threshold, got, c.want)
		}
	}
}

// Loads exactly at a threshold of whole percents are not above it, alone or as the
// mean over many steps: 55 of 100 slots on one of 2 ranks at 10 %, 22 of 55 on one
// of 3 at 20 %. With one slot more they are.
func TestAboveIsStrict(t *testing.T) {
	for ranks := int64(2); ranks <= 72; ranks++ {
		for percent := int64(1); percent <= 100; percent++ {
			most, total := 100+percent, 100*ranks
			m, threshold := OverMean(most, total, int(ranks)), float64(percent)/100
			mean := Number(0)
			for range 21 {
				mean += m / 21
			}
			if Above(m, 1, threshold) || Above(mean, Undefined(), threshold) {
				t.Fatalf("%d of %d slots on one of %d ranks are above %d %%", most, total, ranks, percent)
			}
			if !Above(OverMean(1e6*most+1, 1e6*total, int(ranks)), 1, threshold) {
				t.Fatalf("%d of %d slots on one of %d ranks are not above %d %%", 1_000_000*most+1, 1_000_000*total,
					ranks, percent)
			}
		}
	}
}
