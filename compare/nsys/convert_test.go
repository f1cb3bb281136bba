package nsys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/moebalance/moebalance/compare/capture"
)

// script is a stand-in for the profiler's program.
func script(t *testing.T, body string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell script")
	}
	path := filepath.Join(t.TempDir(), "nsys")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReportsAreExportedOnce(t *testing.T) {
	export := newFixture().work(0, 1, 10, 7, "k").write(t, "made.sqlite")
	dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "a", "cache")
	report := filepath.Join(dir, "run.rank3.nsys-rep")
	if err := os.WriteFile(report, []byte("a report"), 0o600); err != nil {
		t.Fatal(err)
	}
	runs := filepath.Join(t.TempDir(), "runs")
	program := script(t, fmt.Sprintf(`echo run >> %q
[ "$1 $2 $3 $4" = "export --type sqlite --output" ] && [ "$6" = %q ] && cp %q "$5"`, runs, report, export))
	o := Options{Converter: capture.Converter{Nsys: program, Cache: cache}}
	for range 2 {
		trace := mustRead(t, o, report)
		equal(t, "path", trace.Exports[0].Path, report)
		equal(t, "rank by the report's name", trace.Ranks[0].Rank, 3)
		equal(t, "time", trace.Coverage.GPUNS, 7)
	}
	if text, err := os.ReadFile(runs); err != nil || string(text) != "run\n" {
		t.Errorf("want one run for two reads, have %q, %v", text, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("want nothing beside the report, have %v, %v", entries, err)
	}
	unused := filepath.Join(cache, "unused.sqlite")
	old := time.Now().Add(-8 * 24 * time.Hour)
	if err := errors.Join(os.WriteFile(unused, nil, 0o600), os.Chtimes(unused, old, old)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(report, []byte("another report"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustRead(t, o, report)
	if _, err := os.Stat(unused); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an export that nobody used for a week is still there: %v", err)
	}
	if entries, err := os.ReadDir(cache); err != nil || len(entries) != 2 {
		t.Errorf("want one export for each content and nothing else, have %v, %v", entries, err)
	}
}

func TestReportThatCannotBeExported(t *testing.T) {
	report := filepath.Join(t.TempDir(), "x.nsys-rep")
	if err := os.WriteFile(report, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	for body, want := range map[string]string{
		"echo too old >&2; exit 3": "too old",
		"exit 0":                   "want an export, have success",
	} {
		_, err := Read(t.Context(), []string{report},
			Options{Converter: capture.Converter{Nsys: script(t, body), Cache: cache}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q, have %v", body, want, err)
		}
	}
	if entries, err := os.ReadDir(cache); err != nil || len(entries) != 0 {
		t.Errorf("want nothing left behind, have %v, %v", entries, err)
	}
}
