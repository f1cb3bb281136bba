package diff

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/moebalance/moebalance/compare/trace"
)

// captured reads one arm of a recorded capture.
func captured(t *testing.T, capture, arm string) *trace.Trace {
	t.Helper()
	return matched(t, filepath.Join(capture, arm+".*"))
}

// matched reads the captures of testdata that a pattern names.
func matched(t *testing.T, pattern string) *trace.Trace {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "testdata", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no exports of %s: %v", pattern, err)
	}
	trace, err := trace.Read(context.Background(), paths, trace.Options{Threshold: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// Nsight Systems and PyTorch's profiler tell other things of a kernel, so its phase can
// differ between them.
func TestProfilersDoNotCompare(t *testing.T) {
	c := Compare(captured(t, "hf-qwen3-ep4-nsys", "normal"), captured(t, "hf-qwen3-ep4", "perfect"))
	if c.Comparable || c.Prediction.Gain.Defined() {
		t.Errorf("compared: %+v", c.Prediction)
	}
}

// Steps, ranks and layers of a capture may come in any order.
func TestCompareTracesDoesNotDependOnOrder(t *testing.T) {
	normal, perfect := captured(t, "gptoss-ep4-loop", "normal"), captured(t, "gptoss-ep4-loop", "perfect")
	want := Compare(normal, perfect)
	for i, j := 0, len(normal.Cells)-1; i < j; i, j = i+1, j-1 {
		normal.Cells[i], normal.Cells[j] = normal.Cells[j], normal.Cells[i]
	}
	have, _ := json.Marshal(Compare(normal, perfect))
	if before, _ := json.Marshal(want); string(have) != string(before) {
		t.Error("the result depends on the order of the cells")
	}
}
