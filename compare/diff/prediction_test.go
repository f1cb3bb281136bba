package diff

import (
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// One layer, two ranks. A normal step needs 30 (the slowest rank); a perfect one 20 of
// experts and 2 that its router adds: 8 saved, of which 10 loss, 0 expert time and −2
// elsewhere. Its step takes 40 on the wall: 20 %.
func TestPredictionByHand(t *testing.T) {
	normal, perfect := alternating()
	for step := range router.OptInt(3) {
		for rank := range 2 {
			perfect.Cells = append(perfect.Cells, cell(rank, step, 3, trace.PhaseRouter, 2, 0))
		}
		perfect.StepTimes = append(perfect.StepTimes, trace.StepTime{Step: step, WallNS: 40})
	}
	perfect.StepTimes[2].WallNS = router.Undefined() // as of a last step
	c := Compare(normal, perfect)
	p := c.Prediction
	for _, v := range []struct {
		name string
		have router.Number
		want float64
	}{
		{"saved", p.SavedNS, 8}, {"loss", p.LossNS, 10}, {"experts", p.ExpertsNS, 0}, {"other", p.OtherNS, -2},
		{"step", p.StepNS, 40},
		{"gain", p.Gain, 0.2}, {"low", p.Low, 0.2}, {"high", p.High, 0.2}, // every step needs the same
	} {
		checkNear(t, v.name, v.have.Float64(), v.want, 1e-12)
	}
	if p.StepBasis != Profiled || p.ProfilerOverhead.Defined() || p.Steps != [2]int{2, 3} {
		t.Errorf("prediction %+v", p)
	}
	// 64 tokens at 2e9 a second: 32 ns a step, which the profiler makes 25 % longer.
	c.WithCampaign(gain.Result{Metric: gain.Metric{Unit: "tok/s"}, Pairs: []gain.Pair{
		{Perfect: 2e9, Status: gain.PairComplete}, {Perfect: 9e9, Status: gain.PairIncomplete},
	}}, 64)
	checkNear(t, "gain by campaign", c.Prediction.Gain.Float64(), 0.25, 1e-12)
	checkNear(t, "overhead", c.Prediction.ProfilerOverhead.Float64(), 0.25, 1e-12)
	if all := c.Caveats(); all[len(all)-1].Key() != "profiler_overhead" {
		t.Errorf("have %v", all)
	}
	unsaid := func(w router.Warning) bool { return w.Code == "campaign_step_time" }
	if c.Prediction.StepBasis != FromCampaign || slices.ContainsFunc(c.Warnings, unsaid) {
		t.Errorf("by campaign: %+v, warnings %v", c.Prediction, c.Warnings)
	}
	c = Compare(normal, perfect)
	c.WithCampaign(gain.Result{Metric: gain.Metric{Name: "throughput", Unit: "tok/s"},
		Pairs: []gain.Pair{{Perfect: 2e9, Status: gain.PairComplete}}}, 0)
	if i := slices.IndexFunc(c.Warnings, unsaid); i < 0 || c.Prediction.StepBasis != Profiled ||
		!strings.Contains(caveat.Text(c.Warnings[i]), "throughput in tok/s; for tokens per second, add --step-tokens") {
		t.Errorf("without tokens: %+v, warnings %v", c.Prediction, c.Warnings)
	}
	perfect.StepTimes = nil
	c = Compare(normal, perfect)
	all := c.Caveats()
	if p = c.Prediction; p.Gain.Defined() || !p.SavedNS.Defined() || p.StepBasis != "" ||
		all[len(all)-1].Key() != "no_gain_predicted" {
		t.Errorf("without any step time: %+v, %v", p, all)
	}
	for i := range normal.Cells {
		normal.Cells[i].Layer, normal.Cells[i].Step = router.NoID, router.NoID
	}
	if p = Compare(normal, perfect).Prediction; p.SavedNS.Defined() || p.Gain.Defined() {
		t.Errorf("without layers: %+v", p)
	}
}

// In the loop over experts every wait of the normal arm is mostly host lateness (559 of
// 581, 589 of 438 and 485 of 366 µs): its steps are not as long as their compute.
func TestLateHostsBoundThePrediction(t *testing.T) {
	c := Compare(captured(t, "gptoss-ep4-loop", "normal"), captured(t, "gptoss-ep4-loop", "perfect"))
	if !c.Prediction.LateHosts || !c.Prediction.Gain.Defined() {
		t.Errorf("have %+v", c.Prediction)
	}
}

// Steps of one size keep their differences; differences in proportion to their steps have
// no spread left. By hand: mean 4, steps 1, 2, 3 of mean 2, so 2 − 4·(−½), 4 − 0, 9 − 4·½.
func TestOfMeanStep(t *testing.T) {
	for _, c := range []struct{ differences, sizes, want []float64 }{
		{[]float64{1, 5, 3}, []float64{7, 7, 7}, []float64{1, 5, 3}},
		{[]float64{2, 4, 6}, []float64{10, 20, 30}, []float64{4, 4, 4}},
		{[]float64{2, 4, 6}, []float64{30, 20, 10}, []float64{0, 4, 8}},
		{[]float64{2, 1, 9}, []float64{1, 2, 3}, []float64{4, 1, 7}},
	} {
		mean := stat.Mean(c.differences, nil)
		got := ofMeanStep(slices.Clone(c.differences), c.sizes)
		if !slices.Equal(got, c.want) || stat.Mean(got, nil) != mean {
			t.Errorf("%v in steps of %v: %v, want %v", c.differences, c.sizes, got, c.want)
		}
	}
}

// A campaign that failed a check lends neither its gain nor its step time.
func TestRefusedCampaign(t *testing.T) {
	c := Compare(captured(t, "deepseek-ep4-ranks", "normal"), captured(t, "deepseek-ep4-ranks", "perfect"))
	want := c.Prediction.StepNS
	c.WithCampaign(gain.Result{Verdict: gain.Invalid}, 4096)
	if p := c.Prediction; p.Measured != nil || p.StepNS != want || !warned(c, CampaignRefused, "") {
		t.Errorf("%+v", p)
	}
}
