package router

import (
	"math"
	"testing"
)

func TestFlagged(t *testing.T) {
	none := Undefined()
	for _, c := range []struct {
		name          string
		m, floor, p95 Number
		threshold     float64
		want          bool
	}{
		{"well above everything", 1.5, 1, 1.05, 0.10, true},
		{"below the threshold", 1.08, 1, 1.02, 0.10, false},
		{"exactly at the threshold", 1.25, 1, 1.02, 0.25, false}, // 1.25 and 0.25 are exact in binary
		{"one step beyond the threshold", Number(math.Nextafter(1.25, 2)), 1, 1.02, 0.25, true},
		{"all of it is the floor", 8, 8, 1.02, 0.10, false},                        // 1 token, top-2 of 16: 1·16/2 = 8
		{"less than the threshold beyond the floor", 1.30, 1.2, none, 0.10, false}, // 1.30/1.2 − 1 = 8.3 %
		{"more than the threshold beyond the floor", 1.35, 1.2, none, 0.10, true},  // 1.35/1.2 − 1 = 12.5 %
		{"chance does as much", 1.27, 1, 1.33, 0.10, false},
		{"chance does exactly as much", 1.27, 1, 1.27, 0.10, false},
		{"no null to compare with", 1.27, 1, none, 0.10, true},
		{"a time has no floor", 1.2, none, none, 0.10, true},
		{"a time has no floor and stays below", 1.05, none, none, 0.10, false},
		{"nothing was measured", none, 1, 1, 0.10, false},
		{"a threshold of zero", 1.001, 1, none, 0, true},
		{"a balanced load at a threshold of zero", 1, 1, none, 0, false},
	} {
		if got := Flagged(c.m, c.floor, c.p95, c.threshold); got != c.want {
			t.Errorf("%s: Flagged(%v, %v, %v, %v) = %v, want %v", c.name, c.m, c.floor, c.p95, c.threshold, got, c.want)
		}
	}
}
