package bench

import (
	"testing"
	"time"
)

// A lock that is let go of within two seconds does not stop a campaign.
func TestLockIsWaitedFor(t *testing.T) {
	c := create(t, testSpec(t, 1))
	time.AfterFunc(300*time.Millisecond, func() { c.Close() })
	again, err := Resume(c.Folder)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}
