package gain

import (
	"fmt"
	"slices"
	"testing"
)

// Pairs of a further arm, incomplete pairs and pairs at several loads give no step time, and
// where none do it is said what to give.
func TestStepsNS(t *testing.T) {
	r := Result{Metric: Metric{Name: "token_throughput", Unit: "tok/s"}, Pairs: []Unit{
		{Values: Values{Normal: 1000, Perfect: 2000, Status: PairComplete}},
		{Values: Values{Normal: 1000, Perfect: 4000, Status: PairComplete}, Arm: "balancer"},
		{Values: Values{Normal: 500, Perfect: 8000, Status: "excluded"}},
	}}
	for arm, want := range map[Arm]float64{Normal: 8e6, Perfect: 4e6} {
		if steps, why := r.StepsNS(arm, 8); !slices.Equal(steps, []float64{want}) || why.Code != "" {
			t.Errorf("%s: %v, %v", arm, steps, why)
		}
	}
	for want, k := range map[string]struct {
		change func(*Result)
		tokens float64
	}{
		"metric token_throughput": {func(*Result) {}, 0},
		"points <nil>":            {func(r *Result) { r.Points = make([]Comparison, 2) }, 8},
	} {
		other := r
		k.change(&other)
		if steps, why := other.StepsNS(Perfect, k.tokens); steps != nil ||
			fmt.Sprint(why.Args["why"], " ", why.Args["name"]) != want {
			t.Errorf("%v, %v; want no steps and %q", steps, why, want)
		}
	}
}
