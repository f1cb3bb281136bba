package counts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// summaryOf is SGLang 0.5.23's Prometheus summary after some passes of each mode.
func summaryOf(modes map[string][2]float64) string {
	text := "# TYPE sglang:eplb_balancedness summary\n"
	for mode, m := range modes {
		labels := fmt.Sprintf(`{engine_type="unified",forward_mode=%q,model_name="m",moe_ep_rank="0",tp_rank="0"}`, mode)
		text += fmt.Sprintf("sglang:eplb_balancedness_count%s %.1f\nsglang:eplb_balancedness_sum%s %v\n", labels, m[0], labels,
			m[1])
	}
	return text + "# TYPE sglang:eplb_balancedness_created gauge\nsglang:eplb_balancedness_created{forward_mode=\"decode\"} 1.7e+09\n"
}

// Each mode has the mean of its passes, idle ones none.
func TestBalancednessSummary(t *testing.T) {
	r := parsed(t, summaryOf(map[string][2]float64{"decode": {90, 72}, "extend": {10, 5}, "idle": {7, 7}}))
	if !slices.Equal(r.Reported, []Reported{{Step: router.NoID, Phase: Decode, Passes: 90, Balancedness: 0.8,
		MaxOverMean: 1.25}, {Step: router.NoID, Phase: Prefill, Passes: 10, Balancedness: 0.5, MaxOverMean: 2}}) {
		t.Errorf("%+v", r.Reported)
	}
	refused(t, map[string]string{
		strings.Replace(summaryOf(map[string][2]float64{"decode": {1, 1}}), "} 1.0", "} -1", 1): "want a count between 0",
		summaryOf(map[string][2]float64{"idle": {7, 7}}):                                        "holds no counts",
	})
}

// Lines of unlike passes have no common mean: passes of more than twice the slots, and vLLM's before and
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
		sglang("0.6", 75200) + sglang("0.4", 752) + sglang("0.4", 760): {"passes of 75200 slots", "passes of 752 to 760 slots",
			"passes of 752 to 760 slots"},
		sglang("0.6", 1504) + sglang("0.4", 752):                        {"", ""},
		vllm(400, "0.5") + vllm(500, "0.5") + vllm(0, "0.9"):            {"steps before experts moved", "steps before experts moved", "steps since experts moved"},
		vllm(400, "0.5") + vllm(400, "0.5") + vllm(500, "0.9"):          {"", "", ""},
		vllm(0, "0.5") + strings.Replace(vllm(0, "0.9"), "m:", "n:", 1): {"m", "n"},
	} {
		var have []Phase
		for _, r := range parsed(t, text).Reported {
			have = append(have, r.Phase)
		}
		if !slices.Equal(have, want) {
			t.Errorf("%s: %q, want %q", text, have, want)
		}
	}
}

// Newer releases of SGLang print a line for each prefill pass, and one for several of
// decode: fields as its test test_expert_balancedness_log_batching asks for.
func TestLogTellsPhases(t *testing.T) {
	const decode = "[2026-11-22 09:00:01 DP0 TP0 EP0] [Expert Balancedness] first_forward_pass_id=10 forward_pass_id=12 aggregated_forward_passes=3 average_balancedness=0.200 min_balancedness=0.100 max_balancedness=0.300 last_10_average_balancedness=0.900 gpu_physical_count_sum=60\n"
	const prefill = "[2026-11-22 09:00:02 DP0 TP0 EP0] [Expert Balancedness] forward_pass_id=20 current_pass_balancedness=0.400 last_10_average_balancedness=0.900 gpu_physical_count_sum=40\n"
	r, err := parse("x.log", []byte(decode+prefill))
	if err != nil {
		t.Fatal(err)
	}
	want := []Reported{{Step: 12, Phase: Decode, Passes: 3, Balancedness: 0.2, MaxOverMean: 5},
		{Step: 20, Phase: Prefill, Passes: 1, Balancedness: 0.4, MaxOverMean: 2.5}}
	if !slices.Equal(r.Reported, want) {
		t.Errorf("have %+v, want %+v", r.Reported, want)
	}
	if r, err = parse("x.log", []byte(prefill)); err != nil || len(r.Reported) != 1 || r.Reported[0].Phase != "" {
		t.Errorf("an older log does not tell phases: %+v, %v", r, err)
	}
}
