package bench

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
)

// fullAttempt has something in every field that is stored.
func fullAttempt() Attempt {
	counted := &proof.LoadProof{Source: "c", Ranks: 2, RankMaxOverMean: 1.5, RankFloor: 1, ExpertMaxOverMean: 2,
		ExpertFloor: 1}
	result := &metrics.Result{Format: "f", Primary: "x",
		Metrics: []metrics.Metric{{Metric: gain.Metric{Name: "x", Unit: "u", HigherIsBetter: true}, Value: 3}},
		Work:    map[string]float64{gain.WorkRequests: 4},
		Proof: metrics.Proof{Claimed: true, Ranks: 2,
			Layers: []metrics.LayerBalance{{ExpertMaxOverMean: 1, RankMaxOverMean: 2}}}}
	return Attempt{
		Number: 1, State: Finished, StartedAt: time.Unix(5, 7).UTC(), DurationNS: 1 << 60, ExitCode: 0,
		Error: "none; 'quoted'", Folder: "launches/0", Arguments: []string{"a", "b c"},
		Environment: map[string]string{"X": "1"},
		GPUs: []launch.GPU{{Index: 1, UUID: "GPU-1", Name: "N", Driver: "1", ClockMHz: 5,
			Processes: []launch.GPUProcess{{PID: 9, Name: "p", Ours: true}}}},
		LinesFound: []evidence.ProofLine{{Rank: -1, Times: 2, Text: "line"}}, Warnings: []string{"w"},
		Segments: []Segment{{Run: control.Run{Number: 1, Block: 2, Arm: "normal", Point: "8", Timed: true}, Folder: "run",
			DurationNS: 7, Counts: true, Result: result}},
		Orders: []Ordered{{Sequence: 1, Arm: gain.Normal, Router: "off", Ranks: 2, Counted: counted}},
	}
}

func TestStoreReturnsWhatWasSaved(t *testing.T) {
	spec := testSpec(t, 2, "x")
	spec.Custom, spec.Timeout = []string{"m:ms:lower=1(.*)"}, time.Second
	c := create(t, spec)
	want := fullAttempt()
	if err := c.store.save(2, want); err != nil {
		t.Fatal(err)
	}
	again, err := Open(c.Folder)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if !reflect.DeepEqual(again.Spec, spec) {
		t.Errorf("the spec came back as\n%+v\nwant\n%+v", again.Spec, spec)
	}
	if got := again.Launches[2].Attempts; len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("the attempt came back as\n%+v\nwant\n%+v", got, want)
	}
	if again.ID != c.ID || len(c.ID) != 16 || !again.Created.Equal(time.Unix(1, 0)) {
		t.Errorf("id %q and time %v, want %q and the time of Create", again.ID, again.Created, c.ID)
	}
}

// The file itself refuses a second finished attempt at one launch.
func TestStoreFinishesOnce(t *testing.T) {
	c := create(t, testSpec(t, 1, "x"))
	a := fullAttempt()
	if err := c.store.save(0, a); err != nil {
		t.Fatal(err)
	}
	a.Number = 2
	if err := c.store.save(0, a); err == nil {
		t.Error("a launch finished twice")
	}
	if err := c.store.save(99, a); err == nil {
		t.Error("an attempt at a launch that is not in the plan was stored")
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
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n" + strings.Repeat("x", 200))
	check("a text file", "want a campaign file, have")
	write("")
	check("an empty file", "have version 0")
	os.Remove(path)
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	check("a later version", "have version 99")
}

// A campaign file cut anywhere is refused or read; it never panics, and never
// shows launches that are not there.
func TestCutStore(t *testing.T) {
	c := create(t, testSpec(t, 2, "x"))
	folder := c.Folder
	c.Close()
	whole, err := os.ReadFile(filepath.Join(folder, storeName))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for cut := 0; cut < len(whole); cut += 509 {
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
