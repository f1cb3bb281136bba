package gain

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"testing"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// twoH100 is the campaign of routers in one engine on two H100s (testdata/field).
func twoH100(t *testing.T) (r Result) {
	t.Helper()
	data := require.Value(os.ReadFile("../../testdata/field/results/vllm-two-h100/campaign.json"))
	require.NoError(t, errors.Join(json.Unmarshal(data, &r), r.Upgrade()))
	return r
}

// The recorded router is no point of the curve, and the curve foretells what balanced routing won over
// it: +9.4 % measured. By hand, of the arms' times over balanced routing's, which the file has: at 1.2827
// between 1.1993 (1.0736) and 1.5000 (1.1420) it is 1.0736 + 0.0834/0.3007 · 0.0684 = 1.0926; without the
// arm at 1.1993 between 1 and 1.1420 it is 1.0803. At 64 tokens the line's slope may be 0.
func TestPredictLeftOut(t *testing.T) {
	r := twoH100(t)
	list := r.Predict(2, 1.282727307910006, 1)
	if len(list) != 2 || list[0].Value != 64 || list[0].Refused.Args["why"] != "no_cost" {
		t.Fatalf("%+v", list)
	}
	p, measured := list[1], r.Points[1].Gain
	if math.Abs(float64(p.Estimate)-0.0926) > 3e-4 || p.Refused != nil || p.Confidence != 0.975 {
		t.Errorf("%+v, want a gain of 9.26 %%", p)
	}
	if !(p.Low <= measured.Estimate && measured.Estimate <= p.High) || p.High-p.Low < 2*0.0113 {
		t.Errorf("%.4f to %.4f does not hold the measured %.4f, or is narrower than the curve is sure", p.Low, p.High,
			measured.Estimate)
	}
	if back := r.Predict(2, 1, 1.282727307910006)[1]; math.Abs(float64((1+back.Estimate)*(1+p.Estimate))-1) > 1e-9 {
		t.Errorf("there and back: %v, %v", p.Estimate, back.Estimate)
	}
	if none := r.Predict(2, 1.2, 1.2)[1]; none.Estimate != 0 || none.Low != 0 || none.High != 0 {
		t.Errorf("no change: %+v", none)
	}
}

// What was not measured is not predicted.
func TestPredictRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*Result)
		ranks    int
		from, to router.Number
		want     string
	}{
		"above":    {func(*Result) {}, 2, 1.6, 1.1, "outside"},
		"ranks":    {func(*Result) {}, 8, 1.3, 1.1, "ranks"},
		"invalid":  {func(r *Result) { r.Verdict = Invalid }, 2, 1.3, 1.1, "campaign"},
		"no curve": {func(r *Result) { r.Comparisons[1].Dose = nil }, 2, 1.3, 1.1, "no_curve"},
		"both":     {func(r *Result) { r.Comparisons[1].Dose = nil }, 8, 1.3, 1.1, "ranks"},
		"claimed":  {func(r *Result) { r.Comparisons[1].Dose.Arms[0].Measured = false }, 2, 1.3, 1.1, "claimed"},
	} {
		r := twoH100(t)
		test.change(&r)
		p := r.Predict(test.ranks, test.from, test.to)[1]
		if p.Refused.Args["why"] != test.want || p.Estimate.Defined() || p.Low.Defined() || p.High.Defined() {
			t.Errorf("%s: %+v, want refused: %s", name, p, test.want)
		}
	}
}
