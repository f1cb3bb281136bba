package trace

import (
	"context"
	"errors"
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
	f := newFixture().work(0, 1, 10, 9, "gemm")
	first, copied := f.write(t, "x.rank0.sqlite"), f.write(t, "copy.rank1.sqlite")
	for _, other := range []string{copied, summaryOf(t, copied)} {
		for _, ranks := range []map[string]int{{first: 0}, {first: 1}} {
			_, err := Read(t.Context(), []string{first, other}, Options{Rank: ranks})
			if !errors.Is(err, ErrNotOneRun) || !strings.Contains(err.Error(), "one capture twice") {
				t.Errorf("%s with %s as rank %v: have %v", first, other, ranks, err)
			}
		}
	}
}
