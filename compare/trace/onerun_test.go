package trace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Ranks of two arms are refused; ranks of two runs are a doubt.
func TestExportsOfTwoRuns(t *testing.T) {
	paths := inTestdata(t, "deepseek-ep4-ranks/*.rank0.sqlite")
	if _, err := Read(context.Background(), paths, Options{}); !errors.Is(err, ErrNotOneRun) {
		t.Errorf("two arms: have %v", err)
	}
	paths[1] = inTestdata(t, "hf-qwen3-ep4-nsys/normal.rank1.sqlite")[0]
	if trace := mustRead(t, Options{}, paths...); trace.Doubt().Code != ranksDiffer {
		t.Errorf("two runs: have %v", trace.Doubt())
	}
}

// A capture and its copy, given as two ranks, would show perfect balance, and so would a
// summary of it; two ranks of one run do not run at the same nanoseconds.
func TestOneCaptureAsTwoRanks(t *testing.T) {
	paths := inTestdata(t, "hf-qwen3-ep4-nsys/normal.rank[01].sqlite")
	content, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy.rank1.sqlite")
	if err := os.WriteFile(copied, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{copied, summaryOf(t, copied)} {
		for _, ranks := range []map[string]int{{paths[0]: 0}, {paths[0]: 1}} {
			_, err := Read(t.Context(), []string{paths[0], other}, Options{Rank: ranks})
			if !errors.Is(err, ErrNotOneRun) || !strings.Contains(err.Error(), "one capture twice") {
				t.Errorf("%s with %s as rank %v: have %v", paths[0], other, ranks, err)
			}
		}
	}
}
