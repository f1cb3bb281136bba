package counts

import (
	"fmt"
	"math"
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

// Each mode has the mean of its passes, idle ones none; of two scrapes the passes between them count.
func TestBalancednessSummary(t *testing.T) {
	earlier := parsed(t, summaryOf(map[string][2]float64{"decode": {90, 72}, "extend": {10, 5}, "idle": {7, 7}}))
	if len(earlier.Reported) != 2 || earlier.Reported[0] != (Reported{router.NoID, Decode, 90, 0.8, 1.25, "decode"}) ||
		earlier.Reported[1] != (Reported{router.NoID, Prefill, 10, 0.5, 2, "extend"}) {
		t.Errorf("%+v", earlier.Reported)
	}
	later := parsed(t, summaryOf(map[string][2]float64{"decode": {100, 81}, "extend": {10, 5}, "target_verify": {4, 3},
		"idle": {9, 9}}))
	since, err := later.Since(earlier)
	if err != nil || len(since.Reported) != 2 || since.Reported[0].Passes != 10 ||
		math.Abs(since.Reported[0].Balancedness.Float64()-0.9) > 1e-9 || since.Reported[1].Phase != Decode {
		t.Errorf("%+v, %v", since.Reported, err)
	}
	if _, err := earlier.Since(later); err == nil || !strings.Contains(err.Error(), "balancedness of decode fell") {
		t.Error(err)
	}
	refused(t, map[string]string{
		strings.Replace(summaryOf(map[string][2]float64{"decode": {1, 1}}), "} 1.0", "} -1", 1): "want a count between 0",
		summaryOf(map[string][2]float64{"idle": {7, 7}}):                                        "holds no counts",
	})
}
