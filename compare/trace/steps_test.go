package trace

import "testing"

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
