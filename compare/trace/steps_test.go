package trace

import (
	"math"
	"path/filepath"
	"testing"
)

// The numbers are worked out with sqlite3 and Python: the two GroupProblemShape kernels of each layer in order
// of start, max/mean over ranks per step and layer, over the steps.
func TestImbalanceOfInferredLayers(t *testing.T) {
	exports, _ := filepath.Glob(filepath.Join(testdata, "hf-qwen3-ep4-nsys/normal.rank?.sqlite"))
	trace := mustRead(t, Options{}, exports...)
	for i, want := range []float64{1.6575, 1.3136, 1.6775} {
		if row := trace.Imbalance[i]; math.Abs(row.MaxOverMean.Float64()-want) > 5e-5 || row.Steps != 3 {
			t.Errorf("layer %d: want %v, have %v of %d steps", i, want, row.MaxOverMean, row.Steps)
		}
	}
}

// The ranges of vLLM and SGLang lead to the hook, TensorRT-LLM's and none to its own switch.
func TestTreatment(t *testing.T) {
	for name, want := range map[string]string{"execute_context_1(8192)_generation_0(0)": "hook", "step[DECODE bs=32]": "hook",
		"[Executor] _forward_step 7: 0 ctx reqs, 3 gen reqs": "", "ProfilerStep#3": "", "": ""} {
		trace := Trace{StepTimes: []StepTime{{}, {Range: name}}}
		if have := trace.Treatment(); have != want {
			t.Errorf("%q: %q, want %q", name, have, want)
		}
	}
}
