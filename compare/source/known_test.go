package source

import (
	"os"
	"path/filepath"
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
		"../../testdata/placement/series.py":            false,
		notes:                                           false,
	} {
		if got := Knows(path); got != want {
			t.Errorf("%s: known is %v, want %v", path, got, want)
		}
	}
}
