package bench

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// The campaign file holds commands, and commands hold secrets.
func TestCampaignFileIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such permissions")
	}
	c := create(t, testSpec(t, 1, "x"))
	path := filepath.Join(c.Folder, storeName)
	check := func() {
		t.Helper()
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if info, err := os.Stat(path + suffix); err == nil && info.Mode().Perm() != 0o600 || suffix == "" &&
				err != nil {
				t.Errorf("%s: %v, %v", storeName+suffix, info, err)
			}
		}
	}
	check()
	c.Close()
	again, err := Resume(c.Folder)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	check()
}
