package gain

import (
	"slices"
	"testing"
)

// Pairs of a further arm, incomplete ones and those of several loads give no step time.
func TestStepsNS(t *testing.T) {
	r := Result{Metric: Metric{Name: "token_throughput", Unit: "tok/s"}, Pairs: []Pair{
		{Normal: 1000, Perfect: 2000, Status: PairComplete},
		{Normal: 1000, Perfect: 4000, Status: PairComplete, Arm: "balancer"},
		{Normal: 500, Perfect: 8000, Status: "excluded"},
	}}
	if normal, perfect := r.StepsNS(Normal, 8), r.StepsNS(Perfect, 8); !slices.Equal(normal, []float64{8e6}) || !slices.Equal(perfect, []float64{4e6}) {
		t.Errorf("%v and %v", normal, perfect)
	}
	r.Points = make([]PointGain, 2)
	if steps := r.StepsNS(Perfect, 8); steps != nil {
		t.Errorf("%v of two loads", steps)
	}
}
