package counts

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Lines of unlike passes have no common mean: passes of slots of other length, and vLLM's before and
// after experts moved, when its steps begin anew.
func TestUnlikeLinesStandApart(t *testing.T) {
	sglang := func(even string, slots int) string {
		return fmt.Sprintf("[Expert Balancedness] forward_pass_id=1 current_pass_balancedness=%s gpu_physical_count_sum=%d\n",
			even, slots)
	}
	vllm := func(step int, even string) string {
		return fmt.Sprintf("EPLB step: %d for model m: avg_tokens=1.0, max_tokens=2, balancedness=%s, steps until the next "+
			"rearrangement: %d\n", step, even, 1000-step)
	}
	for text, want := range map[string][]Phase{
		sglang("0.6", 75200) + sglang("0.4", 752) + sglang("0.4", 100): {"passes of about 75200 slots",
			"passes of about 752 slots", "passes of about 100 slots"},
		sglang("0.6", 1900) + sglang("0.4", 1000):                       {"", ""},
		vllm(400, "0.5") + vllm(500, "0.5") + vllm(0, "0.9"):            {"steps before experts moved", "steps before experts moved", "steps since experts moved"},
		vllm(400, "0.5") + vllm(400, "0.5") + vllm(500, "0.9"):          {"", "", ""},
		vllm(0, "0.5") + strings.Replace(vllm(0, "0.9"), "m:", "n:", 1): {"m", "n"},
	} {
		var have []Phase
		for _, r := range parsed(text).Reported {
			have = append(have, r.Phase)
		}
		if !slices.Equal(have, want) {
			t.Errorf("%s: %q, want %q", text, have, want)
		}
	}
}

// What lines of engines say: decode is summed over passes.
func TestLogsOfEngines(t *testing.T) {
	const decode = "[Expert Balancedness] first_forward_pass_id=10 forward_pass_id=12 aggregated_forward_passes=3 " +
		"average_balancedness=0.200 min_balancedness=0.100 gpu_physical_count_sum=60\n"
	const prefill = "[Expert Balancedness] forward_pass_id=20 current_pass_balancedness=0.400 gpu_physical_count_sum=40\n"
	have := ""
	for _, r := range parsed(decode + prefill).Phases()[0].Reported { // without any step
		have += fmt.Sprintln(r.Step, r.Phase, r.Passes, r.Balancedness, r.MaxOverMean)
	}
	if have != "12 decode 3 0.2 5\n20 prefill 1 0.4 2.5\n" {
		t.Error(have)
	}
	refused(t, map[string]string{"[Expert Hotness] Current: mean=1.2.5, max=2.300\n": "want a balancedness",
		"[Expert Hotness] Current: mean=0.9, max=2.300\n":                        "max/mean from 1 on", // shares in percent
		"EPLB step: avg_tokens=1024.50, max_tokens=2048, balancedness=50.02 %\n": "from 0 to 1"})
}
