package diff

import (
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// What a prediction saves is its parts, its gain is over the step that is left, and a campaign
// gives that step another time. On DeepSeek-V3's shape steps take 11.6 and 10.1 ms.
func TestPrediction(t *testing.T) {
	normal, perfect := captured(t, "deepseek-ep4-ranks", "normal"), captured(t, "deepseek-ep4-ranks", "perfect")
	c := Compare(normal, perfect)
	p := c.Prediction
	checkNear(t, "gain", p.Gain.Float64(), 0.17, 0.01)
	checkNear(t, "saved over the step", (p.SavedNS / p.StepNS).Float64(), p.Gain.Float64(), 1e-12)
	if !(p.Low < p.Gain) || !(p.Gain < p.High) || p.StepBasis != Profiled || p.ProfilerOverhead.Defined() {
		t.Errorf("prediction %+v", p)
	}
	// 64 tokens at 1e4 a second: 6.4 ms a step.
	alike := gain.Gain{Estimate: 0.2, Low: 0.15, High: 0.25}
	c.WithCampaign(gain.Result{Gain: alike, Metric: gain.Metric{Unit: "tok/s"}, Pairs: []gain.Unit{
		{Values: gain.Values{Perfect: 1e4, Status: gain.PairComplete}},
		{Values: gain.Values{Perfect: 9e9, Status: gain.PairIncomplete}},
	}}, 64)
	checkNear(t, "gain by campaign", c.Prediction.Gain.Float64(), (p.SavedNS / 6.4e6).Float64(), 1e-9)
	checkNear(t, "overhead", c.Prediction.ProfilerOverhead.Float64(), (p.StepNS/6.4e6 - 1).Float64(), 1e-9)
	if all := c.Warnings; all[len(all)-1].Key() != "profiler_overhead" {
		t.Errorf("have %v", all)
	}
	unsaid := func(w router.Warning) bool { return w.Code == "campaign_step_time" }
	if c.Prediction.StepBasis != FromCampaign || slices.ContainsFunc(c.Warnings, unsaid) {
		t.Errorf("by campaign: %+v, warnings %v", c.Prediction, c.Warnings)
	}
	c = Compare(normal, perfect)
	c.WithCampaign(gain.Result{Gain: alike, Metric: gain.Metric{Name: "throughput", Unit: "tok/s"},
		Pairs: []gain.Unit{{Values: gain.Values{Perfect: 2e9, Status: gain.PairComplete}}}}, 0)
	if i := slices.IndexFunc(c.Warnings, unsaid); i < 0 || c.Prediction.StepBasis != Profiled ||
		!strings.Contains(caveat.Text(c.Warnings[i]), "throughput in tok/s; for tokens per second, add --step-tokens") {
		t.Errorf("without tokens: %+v, warnings %v", c.Prediction, c.Warnings)
	}
	perfect.Replays = nil
	if p = Compare(normal, perfect).Prediction; p.SavedNS.Defined() || p.Gain.Defined() {
		t.Errorf("without a replay: %+v", p)
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
	for far, unlike := range map[gain.Gain]bool{
		{Estimate: 0.40, Low: 0.38, High: 0.42}: true,
		{Estimate: 0.03, Low: 0.02, High: 0.04}: true,
		{Estimate: 0.40, Low: 0.10, High: 0.70}: false, // whose interval holds the predicted 17 %
		{Estimate: 0.30, Low: 0.28, High: 0.32}: false, // less than twice
	} {
		c := Compare(captured(t, "deepseek-ep4-ranks", "normal"), captured(t, "deepseek-ep4-ranks", "perfect"))
		c.WithCampaign(gain.Result{Gain: far}, 0)
		if warned(c, CampaignUnlike, "") != unlike || (c.Prediction.Measured == nil) != unlike {
			t.Errorf("%+v beside %v: %+v", far, c.Prediction.Gain, c.Warnings)
		}
	}
}
