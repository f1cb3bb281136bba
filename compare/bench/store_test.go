package bench

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A file with an attempt after the finished one, or at a launch that is not in the plan, is refused; one that was
// written again counts as it stood last.
func TestStoreRefusesAttempts(t *testing.T) {
	for name, k := range map[string]struct {
		at   int
		more Attempt
		want string
	}{
		"after it was finished": {0, Attempt{Number: 2, State: Finished}, "after launch 0 was finished"},
		"not in the plan":       {99, Attempt{Number: 1}, "at launch 99 of 2"},
		"written again":         {0, Attempt{Number: 1, State: Finished, ExitCode: 7}, ""},
	} {
		c := create(t, testSpec(t, 1, "x"))
		if err := errors.Join(c.write(0, Attempt{Number: 1, State: Finished}), c.write(k.at, k.more)); err != nil {
			t.Fatal(err)
		}
		switch read, err := Open(c.Folder); {
		case err != nil && (k.want == "" || !strings.Contains(err.Error(), k.want)):
			t.Errorf("%s: %v", name, err)
		case err == nil && (k.want != "" || len(read.Launches[0].Attempts) != 1 ||
			read.Launches[0].Attempts[0].ExitCode != 7):
			t.Errorf("%s: %+v", name, read.Launches)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for text, want := range map[string]string{"": "have version 0", "{\"version\":99}\n": "have version 99",
		"{\"version\":5,\"campaign\":{}}\n{\n": "line 2", "none": "want a folder of 'moebalance bench'"} {
		dir := t.TempDir()
		if text != "none" {
			if err := os.WriteFile(filepath.Join(dir, storeName), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Open(dir)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v, want one line with %q", text, err, want)
		}
		if _, err := Resume(dir); err == nil {
			t.Errorf("%q: resumed", text)
		}
		if entries, _ := os.ReadDir(dir); text == "none" && len(entries) != 0 {
			t.Errorf("opening left %v behind", entries)
		}
	}
}

// A campaign file cut anywhere is refused or read; it never panics, and never
// shows launches that are not there.
func TestCutStore(t *testing.T) {
	c := create(t, testSpec(t, 2, "x"))
	folder := c.Folder
	if err := errors.Join(c.write(0, Attempt{Number: 1, State: Running}), c.write(0, Attempt{Number: 1, State: Ran}),
		c.Close()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(folder, storeName))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for cut := 0; cut < len(whole); cut += 29 {
		if err := os.WriteFile(filepath.Join(dir, storeName), whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := Open(dir)
		if err == nil {
			if len(got.Launches) != 4 {
				t.Errorf("cut at %d of %d: %d launches", cut, len(whole), len(got.Launches))
			}
			got.Close()
		}
		if again, err := Resume(dir); err == nil { // what is written next stands on a line of its own
			err = errors.Join(again.write(1, Attempt{Number: 1, State: Ran}), again.Close())
			if got, failed := Open(dir); err != nil || failed != nil || len(got.Launches[1].Attempts) != 1 {
				t.Errorf("cut at %d of %d, written again: %v, %v", cut, len(whole), err, failed)
			}
		}
	}
}

// No campaign is written over.
func TestCreateKeepsWhatIsThere(t *testing.T) {
	c := create(t, testSpec(t, 1, "x"))
	c.Close()
	if _, err := Create(c.Folder, testSpec(t, 2, "x"), time.Now()); !errors.Is(err, ErrExists) {
		t.Errorf("over a campaign: %v, want ErrExists", err)
	}
}
