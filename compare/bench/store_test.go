package bench

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moebalance/moebalance/testdata/require"
)

// The file itself refuses a second finished attempt at one launch.
func TestStoreFinishesOnce(t *testing.T) {
	c := create(t, testSpec(1, "x"))
	a := Attempt{Number: 1, State: Finished}
	require.NoError(t, c.store.save(0, a))
	a.Number = 2
	if err := c.store.save(0, a); err == nil {
		t.Error("a launch finished twice")
	}
	require.NoError(t, c.store.save(99, a))
	if _, err := Open(c.Folder); err == nil {
		t.Error("an attempt at a launch that is not in the plan was read")
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	check := func(name, want string) {
		t.Helper()
		_, err := Open(dir)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", name, err, want)
		}
		if _, err := Resume(dir); err == nil {
			t.Errorf("%s: resumed", name)
		}
	}
	check("an empty folder", "want a folder of 'moebalance bench'")
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("opening left %v behind", entries)
	}
	path := filepath.Join(dir, storeName)
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	check("an empty file", "have version 0")
	os.Remove(path)
	db := require.Value(sql.Open("sqlite", "file:"+path))
	require.Value(db.Exec("PRAGMA user_version = 99"))
	db.Close()
	check("a later version", "have version 99")
}

// A campaign file cut anywhere is refused or read; it never panics, and never
// shows launches that are not there.
func TestCutStore(t *testing.T) {
	c := create(t, testSpec(2, "x"))
	folder := c.Folder
	c.Close()
	whole := require.Value(os.ReadFile(filepath.Join(folder, storeName)))
	dir := t.TempDir()
	for cut := 0; cut < len(whole); cut += 509 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, storeName), whole[:cut], 0o644))
		got, err := Open(dir)
		if err == nil {
			if len(got.Launches) != 4 {
				t.Errorf("cut at %d of %d: %d launches", cut, len(whole), len(got.Launches))
			}
			got.Close()
		}
	}
}

// No campaign is written over that has a finished launch, or one that may run; one whose launches all failed is.
func TestCreateKeepsWhatIsThere(t *testing.T) {
	for state, exists := range map[State]bool{Started: true, Ran: true, Finished: true, Failed: false, Lost: false,
		Interrupted: false} {
		c := create(t, testSpec(1, "x"))
		log := filepath.Join(c.Folder, launchesFolder, "00000-normal-1", "stdout.log")
		require.NoError(t, errors.Join(c.store.save(0, Attempt{Number: 1, State: state}), c.Close(),
			os.MkdirAll(filepath.Dir(log), 0o755), os.WriteFile(log, nil, 0o600)))
		again, err := Create(c.Folder, testSpec(2, "x"), time.Now())
		if errors.Is(err, ErrExists) != exists || err == nil && (len(again.Launches) != 4 || again.begun()) {
			t.Errorf("over a launch that %s: %v", state, err)
		}
		if _, err := os.Stat(log); (err == nil) != exists {
			t.Errorf("over a launch that %s, its log: %v", state, err)
		}
		if again != nil {
			again.Close()
		}
	}
}
