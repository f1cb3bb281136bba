package nsys

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/capture"
)

// secretive is a capture that knows too much: in every table in which exports do,
// and in places where they do not.
func secretive() *fixture {
	f := twoRanks().environment(`ENABLE_PERFECT_ROUTER="1"`).environment(`WORLD_SIZE="2"`).
		environment(`HF_TOKEN="SECRET-token"`).environment(`HOME="/home/SECRET-user"`).environment(`SECRET`)
	for _, sql := range []string{
		"INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:COMMAND', '/home/SECRET-user/train.py'), ('PROCESS_0:ARGUMENT_0', '--key=SECRET'), ('SECRET', 'x')",
		"INSERT INTO META_DATA_CAPTURE VALUES ('SECRET-name:ENVIRONMENT_VARIABLE', 'RANK2=SECRET')",
		"INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2025.3.2'), ('EXPORT_SCHEMA_VERSION', '3.20.3'), ('EXPORT_PATH', '/home/SECRET-user/x')",
		"CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT); INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('Hostname', 'SECRET-host')",
		"CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT); INSERT INTO PROCESSES VALUES (1, 1, 'SECRET-daemon')",
		"CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER); INSERT INTO ThreadNames VALUES (9001, 0, 1)",
		"CREATE TABLE ProcessStreams (globalPid INTEGER, filenameId INTEGER, contentId INTEGER); INSERT INTO ProcessStreams VALUES (1, 9001, 9001)",
		"INSERT INTO StringIds VALUES (9001, 'SECRET-stdout')",
		"CREATE TABLE TARGET_INFO_GPU (name TEXT, uuid TEXT); INSERT INTO TARGET_INFO_GPU VALUES ('H200', 'SECRET-uuid')",
		"CREATE TABLE MYSECRETTABLE (x TEXT); INSERT INTO MYSECRETTABLE VALUES ('SECRET')",
		"CREATE TABLE DIAGNOSTIC_EVENT (text TEXT); INSERT INTO DIAGNOSTIC_EVENT VALUES ('Not all CUDA events might have been collected. See /home/SECRET-user/a'), " +
			"('Not all CUDA events might have been collected. See /home/SECRET-user/b'), ('Process SECRET-daemon was launched')",
		"ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN SECRETCOLUMN TEXT; UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET SECRETCOLUMN = 'SECRET'",
		// numbers that are none
		"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (5, 6, 'SECRET-text', 77, 'SECRET-text')",
		"CREATE TABLE gone (x TEXT); INSERT INTO gone VALUES ('SECRET-deleted'); DELETE FROM gone; DROP TABLE gone",
	} {
		f.sql("%s", sql)
	}
	return f
}

func scrubbed(t *testing.T, export string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(export))
	if _, err := capture.Scrub(context.Background(), export, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestScrubbedCopyHoldsNoSecrets(t *testing.T) {
	export := secretive().sql(
		"CREATE TABLE ENUM_NSYS_EVENT_TYPE (id INTEGER, name TEXT); INSERT INTO ENUM_NSYS_EVENT_TYPE VALUES (59, 'NvtxPushPopRange'), (200, 'SECRET')").write(t, "secretive.sqlite")
	before, err := os.ReadFile(export)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(before, []byte("SECRET")) < 20 {
		t.Fatal("the fixture has lost its secrets")
	}
	copied, err := os.ReadFile(scrubbed(t, export))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"SECRET", "HOME", "TOKEN", "Hostname", "/home", "H200"} {
		if at := bytes.Index(bytes.ToUpper(copied), []byte(strings.ToUpper(word))); at >= 0 {
			t.Errorf("%q at byte %d: %q", word, at, copied[max(0, at-20):min(len(copied), at+40)])
		}
	}
	after, err := os.ReadFile(export)
	if err != nil || sha256.Sum256(before) != sha256.Sum256(after) {
		t.Errorf("the export was changed, %v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(export))
	if err != nil || len(entries) != 1 {
		t.Errorf("want nothing beside the export, have %v, %v", entries, err)
	}
}

// Names of ranges stay, also where they say who made the capture: Scrub lists them.
func TestScrubListsNamesThatReveal(t *testing.T) {
	f := twoRanks().environment(`USER="alice-w"`).push(0, 0, 90, "run of Alice-W").push(0, 0, 90,
		"node-17: prefill").push(0, 0, 90, "on node-17")
	f.sql("CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT)").sql(
		"INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('Hostname', 'node-17')")
	revealing, err := capture.Scrub(context.Background(), f.write(t, "named.sqlite"),
		filepath.Join(t.TempDir(), "out.sqlite"))
	if want := []string{"node-17: prefill", "on node-17", "run of Alice-W"}; err != nil ||
		!slices.Equal(revealing, want) {
		t.Errorf("want %q, have %q, %v", want, revealing, err)
	}
}

// The same Trace, and the same reports, from copy and export.
func TestScrubbedCopyGivesTheSameAnalysis(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute under the race detector, which has no more to find here than in the other tests")
	}
	exports := []string{secretive().write(t, "secretive.sqlite")}
	for _, name := range []string{
		"gptoss-ep4-loop/perfect.sqlite", "gptoss-ep4-ranks/normal.rank2.sqlite",
		"deepseek-ep4-ranks/perfect.rank1.sqlite",
		"gptoss-graph/node-normal.sqlite", "gptoss-graph/graph-normal.sqlite",
	} {
		exports = append(exports, filepath.Join(testdata, name))
	}
	for _, export := range exports {
		copied := scrubbed(t, export)
		want, have := mustRead(t, Options{Threshold: 0.1}, export), mustRead(t, Options{Threshold: 0.1}, copied)
		// which the copy does not name
		have.Exports[0].Path, have.Exports[0].GPU = want.Exports[0].Path, want.Exports[0].GPU
		if a, b := mustJSON(t, want), mustJSON(t, have); a != b {
			t.Errorf("%s:\n%.2000s\n%.2000s", export, a, b)
		}
		before, err := capture.Read(context.Background(), export, capture.Options{})
		after, err2 := capture.Read(context.Background(), copied, capture.Options{})
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		a, b := reflect.ValueOf(*before), reflect.ValueOf(*after)
		for i := range a.NumField() {
			field := a.Type().Field(i)
			// Metadata is kept in part
			if field.IsExported() && field.Name != "Metadata" && !reflect.DeepEqual(a.Field(i).Interface(),
				b.Field(i).Interface()) {
				t.Errorf("%s: %s of the copy differ", export, field.Name)
			}
		}
		again, err := os.ReadFile(scrubbed(t, copied))
		first, err2 := os.ReadFile(copied)
		if err := errors.Join(err, err2); err != nil || !bytes.Equal(again, first) {
			t.Errorf("%s: scrubbing twice changes the copy, %v", export, err)
		}
	}
}

func TestScrubRefuses(t *testing.T) {
	export := twoRanks().write(t, "two.sqlite")
	if _, err := capture.Scrub(context.Background(), export, export); err == nil ||
		!strings.Contains(err.Error(), "a new or empty file") {
		t.Errorf("onto itself: have %v", err)
	}
	dir := t.TempDir()
	text := filepath.Join(dir, "x.sqlite")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := capture.Scrub(context.Background(), text, filepath.Join(dir, "out")); !errors.Is(err,
		capture.ErrNotExport) {
		t.Errorf("no export: have %v", err)
	}
	torch := filepath.Join(testdata, "torch/rank1.pt.trace.json.gz")
	if _, err := capture.Scrub(context.Background(), torch, filepath.Join(dir, "out")); !errors.Is(err,
		capture.ErrNotExport) || !strings.Contains(err.Error(), "have a PyTorch trace") {
		t.Errorf("another profiler's: have %v", err)
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	if _, err := capture.Scrub(stopped, export, filepath.Join(dir, "out")); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: have %v", err)
	}
	if _, err := capture.Scrub(context.Background(), export, filepath.Join(dir, "no", "out")); err == nil {
		t.Error("no folder for the copy: want an error")
	}
	// a damaged page in the middle
	content, err := os.ReadFile(filepath.Join(testdata, "gptoss-graph/node-normal.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 40000; i < 120000; i++ {
		content[i] = 0xA5
	}
	if err := os.WriteFile(text, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := capture.Scrub(context.Background(), text, filepath.Join(dir, "out")); !errors.Is(err,
		capture.ErrDamaged) {
		t.Errorf("damaged: have %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("want no copy and nothing left behind, have %v, %v", entries, err)
	}
}
