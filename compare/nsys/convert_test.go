package nsys

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/capture"
)

// A report is exported by the profiler's program, whose output does not stay, and read under
// the report's own name. What goes wrong there is told in the program's words.
func TestReports(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell script")
	}
	export := newFixture().work(0, 1, 10, 7, "k").write(t, "made.sqlite")
	dir, temporary := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	report, program := filepath.Join(dir, "run.rank3.nsys-rep"), filepath.Join(t.TempDir(), "nsys")
	if err := os.WriteFile(report, []byte("a report"), 0o600); err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		fmt.Sprintf(`[ "$1 $2 $3 $4 $6" = "export --type sqlite --output %s" ] && cp %q "$5"`, report, export): "",
		"echo too old >&2; exit 3": "too old",
		"exit 0":                   "want an export, have success",
	} {
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
			t.Fatal(err)
		}
		trace, err := Read(t.Context(), []string{report}, Options{Converter: capture.Converter{Nsys: program}})
		switch {
		case want == "" && err == nil:
			equal(t, "path", trace.Exports[0].Path, report)
			equal(t, "rank by the report's name", trace.Ranks[0].Rank, 3)
			equal(t, "time", trace.Coverage.GPUNS, 7)
		case err == nil || want == "" || !strings.Contains(err.Error(), want):
			t.Errorf("%s: want %q, have %v", body, want, err)
		}
		for _, folder := range []string{dir, temporary} {
			if entries, err := os.ReadDir(folder); err != nil || folder == dir && len(entries) != 1 ||
				folder == temporary && len(entries) != 0 {
				t.Errorf("want nothing left behind in %s, have %v, %v", folder, entries, err)
			}
		}
	}
}
