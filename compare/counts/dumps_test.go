package counts

import (
	"slices"
	"testing"
)

// Newer releases of SGLang print a line for each prefill pass, and one for several of
// decode: fields as its test test_expert_balancedness_log_batching asks for.
func TestLogTellsPhases(t *testing.T) {
	const decode = "[2026-11-22 09:00:01 DP0 TP0 EP0] [Expert Balancedness] first_forward_pass_id=10 forward_pass_id=12 aggregated_forward_passes=3 average_balancedness=0.200 min_balancedness=0.100 max_balancedness=0.300 last_10_average_balancedness=0.900 gpu_physical_count_sum=60\n"
	const prefill = "[2026-11-22 09:00:02 DP0 TP0 EP0] [Expert Balancedness] forward_pass_id=20 current_pass_balancedness=0.400 last_10_average_balancedness=0.900 gpu_physical_count_sum=40\n"
	r, err := parse("x.log", []byte(decode+prefill))
	if err != nil {
		t.Fatal(err)
	}
	want := []Reported{{Step: 12, Phase: Decode, Passes: 3, Balancedness: 0.2, MaxOverMean: 5, slots: 60},
		{Step: 20, Phase: Prefill, Passes: 1, Balancedness: 0.4, MaxOverMean: 2.5, slots: 40}}
	if !slices.Equal(r.Reported, want) {
		t.Errorf("have %+v, want %+v", r.Reported, want)
	}
	if r, err = parse("x.log", []byte(prefill)); err != nil || len(r.Reported) != 1 || r.Reported[0].Phase != "" {
		t.Errorf("an older log does not tell phases: %+v, %v", r, err)
	}
}
