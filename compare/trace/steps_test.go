package trace

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// Only the chosen steps count, here of steps that are inferred. The numbers are worked
// out with sqlite3 and Python: the two GroupProblemShape kernels of each layer in order
// of start, max/mean over ranks per step and layer, mean over the steps.
func TestChosenSteps(t *testing.T) {
	exports, _ := filepath.Glob(filepath.Join(testdata, "hf-qwen3-ep4-nsys/normal.rank?.sqlite"))
	for _, c := range []struct {
		steps string
		want  [3]float64
	}{{"0-2", [3]float64{1.6575, 1.3136, 1.6775}}, {"1-2", [3]float64{1.6548, 1.3137, 1.6773}},
		{"2", [3]float64{1.6550, 1.3138, 1.6793}}} {
		steps, err := ParseSteps(c.steps)
		if err != nil {
			t.Fatal(err)
		}
		trace := mustRead(t, Options{Steps: steps}, exports...)
		for i, row := range trace.Imbalance {
			if math.Abs(row.MaxOverMean.Float64()-c.want[i]) > 5e-5 || row.Steps != steps.Last-steps.First+1 {
				t.Errorf("steps %s, layer %d: want %v, have %v of %d steps", c.steps, i, c.want[i], row.MaxOverMean,
					row.Steps)
			}
		}
		for _, cell := range trace.Cells {
			if int(cell.Step) < steps.First || int(cell.Step) > steps.Last {
				t.Fatalf("steps %s: a cell of step %v", c.steps, cell.Step)
			}
		}
		if len(trace.Imbalance) != 3 || trace.Steps != c.steps || trace.Coverage.LaunchShare.Defined() {
			t.Errorf("steps %s: %d layers, steps %q, launch share %v", c.steps, len(trace.Imbalance), trace.Steps,
				trace.Coverage.LaunchShare)
		}
	}
}

func TestStepsOutOfRange(t *testing.T) {
	export := filepath.Join(testdata, "gptoss-ep4-loop/normal.sqlite")
	for _, s := range []Steps{{2, 9}, {4, 4}} {
		_, err := Read(t.Context(), []string{export}, Options{Steps: &s})
		if !errors.Is(err, ErrSteps) || !strings.Contains(err.Error(), "the captures have 0-3") {
			t.Errorf("%v: want the steps that are there, have %v", s, err)
		}
	}
	unmarked := newFixture().work(0, 1, 10, 7, "k").write(t, "x.sqlite")
	if _, err := Read(t.Context(), []string{unmarked}, Options{Steps: &Steps{0, 0}}); !errors.Is(err, ErrSteps) ||
		!strings.Contains(err.Error(), "none are known") {
		t.Errorf("want a hint to ranges, have %v", err)
	}
	for _, text := range []string{"", "-1", "2-1", "a-b", "1-", "1-2-3", "0-99999999999"} {
		if s, err := ParseSteps(text); err == nil {
			t.Errorf("%q: read as %v", text, s)
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
