package diff

import (
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

// One layer, two ranks. A normal step needs 30 (the slowest rank); a perfect one 20 of
// experts and 2 that its router adds: 8 saved, of which 10 loss, 0 expert time and −2
// elsewhere. Its step takes 40 on the wall: 20 %.
func TestPredictionByHand(t *testing.T) {
	normal, perfect := alternating()
	for step := range router.OptInt(3) {
		for rank := range 2 {
			perfect.Cells = append(perfect.Cells, cell(rank, step, 3, nsys.PhaseRouter, 2, 0))
		}
		perfect.StepTimes = append(perfect.StepTimes, nsys.StepTime{Step: step, WallNS: 40})
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
	if c.Perfect.OverSteps.Step.Steps != 2 {
		t.Errorf("steps with a wall time: %+v", c.Perfect.OverSteps.Step)
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

// What steps need was worked out outside the program, from the raw files: between two
// collectives the compute of the slowest rank, added up. Throughputs are those of
// unprofiled perfect launches (campaign-qwen3-ep4.json, pairs-abba.jsonl).
func TestPredictionOfCaptures(t *testing.T) {
	for _, c := range []struct {
		capture  string
		savedMS  float64
		within   float64 // layers are shorter than what lies between collectives
		tokens   float64
		perfect  []router.Number
		low, top float64 // of the campaign's interval
	}{
		{"hf-qwen3-ep4", 4.49, 0.15, 16384, []router.Number{284380.9, 283289.6, 283966.2, 282301.2, 282241.8, 283611.6},
			0.068, 0.079},
		{"deepseek-ep4-ranks", 1.692, 0.02, 4096, []router.Number{455670.8, 458709.5, 466408.1, 486395.3, 512855.1,
			460707.7}, 0.198, 0.230},
	} {
		t.Run(c.capture, func(t *testing.T) {
			got := Compare(captured(t, c.capture, "normal"), captured(t, c.capture, "perfect"))
			measured := gain.Result{Metric: gain.Metric{Unit: "tokens/s"}}
			for _, v := range c.perfect {
				measured.Pairs = append(measured.Pairs, gain.Pair{Perfect: v, Status: gain.PairComplete})
			}
			profiled := got.Prediction.StepBasis
			if got.WithCampaign(measured, c.tokens); profiled != Profiled || got.Prediction.StepBasis != FromCampaign {
				t.Fatalf("step time: %s, then %+v", profiled, got.Prediction)
			}
			p := got.Prediction
			checkNear(t, "saved, ms", p.SavedNS.Float64()/1e6, c.savedMS, c.within)
			if !(p.Low.Float64() <= c.top && p.High.Float64() >= c.low) {
				t.Errorf("predicted %v to %v, measured %v to %v", p.Low, p.High, c.low, c.top)
			}
			if p.LateHosts {
				t.Error("ranks wait for load, and the prediction says for hosts")
			}
			if over := p.ProfilerOverhead.Float64(); !(over > 0 && over < 0.3) {
				t.Errorf("profiler overhead %v", over)
			}
		})
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
