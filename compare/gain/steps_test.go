package gain

import (
	"slices"
	"strings"
	"testing"
)

// Pairs of a further arm, incomplete ones and those of several loads give no step time, and
// where none do it is said what to give.
func TestStepsNS(t *testing.T) {
	r := Result{Metric: Metric{Name: "token_throughput", Unit: "tok/s"}, Pairs: []Pair{
		{Normal: 1000, Perfect: 2000, Status: PairComplete},
		{Normal: 1000, Perfect: 4000, Status: PairComplete, Arm: "balancer"},
		{Normal: 500, Perfect: 8000, Status: "excluded"},
	}}
	for arm, want := range map[Arm]float64{Normal: 8e6, Perfect: 4e6} {
		if steps, why := r.StepsNS(arm, 8); !slices.Equal(steps, []float64{want}) || why != "" {
			t.Errorf("%s: %v, %q", arm, steps, why)
		}
	}
	for want, k := range map[string]struct {
		change func(*Result)
		tokens float64
	}{
		"for tokens per second, add --step-tokens": {func(*Result) {}, 0},
		"its metric is latency in s": {func(r *Result) { r.Metric = Metric{Name: "latency", Unit: "s"} },
			8},
		"no complete pair": {func(r *Result) { r.Pairs = r.Pairs[1:] }, 8},
		"several loads":    {func(r *Result) { r.Points = make([]PointGain, 2) }, 8},
	} {
		other := r
		k.change(&other)
		if steps, why := other.StepsNS(Perfect, k.tokens); steps != nil || !strings.Contains(why, want) {
			t.Errorf("%v, %q; want no steps and %q", steps, why, want)
		}
	}
}
