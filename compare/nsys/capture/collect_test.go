package capture

import (
	"runtime/debug"
	"testing"
)

// The collector works as before once a large recording is read.
func TestKeepGC(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(80))
	restore := KeepGC()
	Collect(collectAbove + 1)
	if percent := debug.SetGCPercent(50); percent != 50 {
		t.Errorf("%d %% while a large recording is read, want 50", percent)
	}
	restore()
	if percent := debug.SetGCPercent(80); percent != 80 {
		t.Errorf("%d %% after it, want 80", percent)
	}
}
