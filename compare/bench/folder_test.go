package bench

import (
	"os"
	"path/filepath"
	"testing"
)

// The campaign file holds commands, and commands hold secrets; so do the files beside it while it is written.
func TestCampaignFileIsPrivate(t *testing.T) {
	c := create(t, testSpec(1, "x"))
	for _, when := range []string{"created", "resumed"} {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			info, err := os.Stat(filepath.Join(c.Folder, storeName+suffix))
			if err == nil && info.Mode().Perm() != 0o600 || suffix == "" && err != nil {
				t.Errorf("%s: %s: %v, %v", when, storeName+suffix, info, err)
			}
		}
		c = reopen(t, c)
	}
}
