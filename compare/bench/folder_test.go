package bench

import (
	"os"
	"path/filepath"
	"testing"
)

// The campaign file holds commands, and commands hold secrets.
func TestCampaignFileIsPrivate(t *testing.T) {
	c := create(t, testSpec(t, 1, "x"))
	for _, when := range []string{"created", "resumed"} {
		if info, err := os.Stat(filepath.Join(c.Folder, storeName)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", when, info, err)
		}
		c = reopen(t, c)
	}
}
