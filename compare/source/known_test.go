package source

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A placement with redundant experts fits no EP size that a guess could name, and a folder of
// statistics is nothing without the file that names its experts.
func TestKnows(t *testing.T) {
	notes := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(notes, []byte("tokens: 12\nremember the milk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"../../testdata/counts/eplb.yaml":               true,
		"../../testdata/counts/expert-location.json":    true,
		"../../testdata/placement/stats/meta_info.json": true,
		"../../testdata/counts/spreadsheet.csv":         true,
		"../../testdata/outputs/trtllm-report.json":     true,
		"../../testdata/torch/rank0.pt.trace.json":      true,
		"../../testdata/field/client.py":                false,
		notes:                                           false,
	} {
		if got := Knows(path); got != want {
			t.Errorf("%s: known is %v, want %v", path, got, want)
		}
	}
}

// What was changed after it was written, or is of a version to come, is no result to show; a
// file of a newer version is not taken for counts either.
func TestChangedResults(t *testing.T) {
	text, err := os.ReadFile("../../testdata/campaign-qwen3-ep4.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseResult("whole", text); err != nil {
		t.Error(err)
	}
	for old, c := range map[string][2]string{
		`"estimate": 0.0739`:   {`"estimate": 0.9739`, "want an estimate within its interval, 7.0 % to 7.8 %, have 97.4 %"},
		`"schema_version": 2,`: {`"schema_version": 99,`, "want at most 4, have 99"},
	} {
		_, err := ParseResult("changed", []byte(strings.Replace(string(text), old, c[0], 1)))
		if err == nil || !strings.Contains(err.Error(), c[1]) || errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", old, err)
		}
	}
}
