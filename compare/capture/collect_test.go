package capture

import (
	"runtime/debug"
	"testing"
)

// The collector works as before once a large recording is read.
func TestKeepGC(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	for set, meanwhile := range map[int]int{80: 50, 20: 20, -1: -1} {
		debug.SetGCPercent(set)
		restore := KeepGC()
		Collect(collectAbove + 1)
		if percent := debug.SetGCPercent(50); percent != meanwhile {
			t.Errorf("%d %% while a large recording is read, want %d", percent, meanwhile)
		}
		restore()
		if percent := debug.SetGCPercent(50); percent != set {
			t.Errorf("%d %% after it, want %d", percent, set)
		}
	}
}
