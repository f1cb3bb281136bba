package bench

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// A new campaign in the folder of one without a finished launch keeps what the launches
// of that one wrote, and again.
func TestLogsOfFailedLaunchesStay(t *testing.T) {
	c := create(t, testSpec(t, 1, "x"))
	for n, text := range []string{"first failure", "second failure"} {
		at := filepath.Join(c.Folder, launchesFolder, "00000-normal-1")
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "stderr.log"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		c.Close()
		again, err := Create(c.Folder, testSpec(t, 1, "x"), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		c = again
		for i, want := range []string{"first failure", "second failure"}[:n+1] {
			kept := filepath.Join(c.Folder, []string{"failed-1", "failed-2"}[i], "00000-normal-1", "stderr.log")
			if got, err := os.ReadFile(kept); err != nil || string(got) != want {
				t.Errorf("%s holds %q, %v; want %q", kept, got, err, want)
			}
		}
	}
	c.Close()
}

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
