package input

import "testing"

func TestLauncherRank(t *testing.T) {
	for line, want := range map[string][2]int{
		"0: speed": {0, 3}, " 12: speed": {12, 5}, "[1,3]<stdout>:speed 5": {3, 14}, "[1,0]<stderr>: x": {0, 15},
		"[rank3]: x": {3, 9}, "[default0]:x": {0, 11}, "12:30:01 x": {-1, 0}, "speed": {-1, 0}, "": {-1, 0},
		"99999999999999999999: x": {-1, 0}, "9999999: x": {-1, 0}, "[3] x": {-1, 0},
	} {
		if rank, at := LauncherRank(line); rank != want[0] || at != want[1] {
			t.Errorf("%q: %d, %d", line, rank, at)
		}
	}
}
