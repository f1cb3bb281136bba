package bench

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/moebalance/moebalance/compare/gain"
)

// No name of an arm leads out of the campaign, or makes two launches share a folder.
func TestArmsNameNoFolders(t *testing.T) {
	for name, good := range map[gain.Arm]bool{
		"before": true, "v0.21.1": true, "größe-2": true, "a_b+c": true,
		"x/../../../../victim": false, "../../v1": false, "a/b": false, `a\b`: false, "..": false, ".": false,
		"a..b": false, "-x": false, "a b": false, "a\x00": false, "a\u202eb": false,
		"a\nb": false, "*": false, gain.Arm(strings.Repeat("x", 65)): false, "<b>": false, "=1": false,
	} {
		spec := testSpec(t, 6, "x {arm}")
		spec.Treatment, spec.Builds = Treatment{}, [2]gain.Arm{name, "b"}
		if err := spec.checkArms(); (err == nil) != good {
			t.Errorf("arm %q: %v", name, err)
		}
	}
	// A campaign file of others is read without that check.
	for _, builds := range []gain.Builds{{}, {"../../v1", "../../v2"}} {
		r := runner{Campaign: &Campaign{Spec: Spec{Builds: builds}}}
		seen := map[string]bool{}
		for position := range 4 {
			for _, arm := range []gain.Arm{gain.Normal, "../../x"} {
				name := r.folderName(Launch{Position: position, Arm: arm}, 1)
				if filepath.Base(name) != name || strings.Contains(name, "..") || arm != gain.Normal && seen[name] &&
					!builds.Named() {
					t.Errorf("launch %d of %s is in %q", position, arm, name)
				}
				seen[name] = true
			}
		}
		if len(seen) < 4 {
			t.Errorf("%d folders for 4 launches", len(seen))
		}
	}
}

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
