package bench

import (
	"testing"
	"time"
)

// waitForLock changes how long the test waits for a lock.
func waitForLock(t *testing.T, wait time.Duration) {
	before := lockWait
	lockWait = wait
	t.Cleanup(func() { lockWait = before })
}

// A lock that is let go of while it is waited for does not stop a campaign.
func TestLockIsWaitedFor(t *testing.T) {
	waitForLock(t, 10*time.Second) // in steps of half a second
	c := create(t, testSpec(t, 1))
	time.AfterFunc(50*time.Millisecond, func() { c.Close() })
	again, err := Resume(c.Folder)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}
