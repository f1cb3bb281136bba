package nsys

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

// Ranks of two engines, and of arms and runs two days apart, are refused.
func TestExportsOfTwoRuns(t *testing.T) {
	for what, paths := range map[string][]string{
		"two engines":    {"hf-qwen3-ep4/normal.rank0.json.gz", "vllm/qwen3-normal.rank1.json.gz"},
		"two days apart": {"deepseek-ep4-ranks/normal.rank0.sqlite", "hf-qwen3-ep4-nsys/normal.rank1.sqlite"},
		"two arms":       {"deepseek-ep4-ranks/normal.rank0.sqlite", "deepseek-ep4-ranks/perfect.rank0.sqlite"},
	} {
		for i := range paths {
			paths[i] = filepath.Join(testdata, paths[i])
		}
		if _, err := Read(context.Background(), paths, Options{}); !errors.Is(err, ErrNotOneRun) {
			t.Errorf("%s: have %v", what, err)
		}
	}
}
