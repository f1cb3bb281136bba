package launch

import (
	"runtime"
	"testing"
	"time"
)

func TestWatchCPU(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { now = now.Add(time.Second); return now }
	// One second passes on this clock, of which we claim more than there was: nothing
	// is left for others.
	if v := WatchCPU(clock)(time.Hour); runtime.GOOS == "linux" && v != 0 {
		t.Errorf("others used %v cores, want 0", v)
	}
}
