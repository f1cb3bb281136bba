package diff

import (
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// partsAddUp checks a split against its own definition and returns its parts by name.
func partsAddUp(t *testing.T, s Split) map[PartName]Part {
	t.Helper()
	parts, gain := map[PartName]Part{}, 0.0
	for _, p := range s.Parts {
		parts[p.Name] = p
		gain += p.Gain.Float64()
		require.Near(t, string(p.Name), (p.Gain * s.PerfectNS).Float64(), p.SavedNS.Float64(), 1e-3)
	}
	require.Near(t, "sum of the parts", gain, s.Gain.Float64(), 1e-9)
	return parts
}

// The parts of a predicted gain and of a measured one add up to it; of what launches measured, what nothing
// explains is the rest. On DeepSeek-V3's shape steps take 11.6 and 10.1 ms, launches without a profiler measured
// 22.9 %, and in the campaign 64 tokens at 1e4 a second take 6.4 ms.
func TestSplit(t *testing.T) {
	normal, perfect := captured(t, "deepseek-ep4-ranks", "normal"), captured(t, "deepseek-ep4-ranks", "perfect")
	c := Compare(normal, perfect, gain.Builds{})
	s := c.Split
	require.Near(t, "gain", s.Gain.Float64(), 0.225, 0.01)
	if parts := partsAddUp(t, s); len(parts) != 2 || !(s.Low < s.Gain) || !(s.Gain < s.High) || s.Basis != Profiled {
		t.Errorf("predicted: %+v", s)
	}
	measured := gain.Result{Head: gain.Head{Metric: gain.Metric{Unit: "tok/s"}},
		Gain: gain.Gain{Interval: gain.Interval{Estimate: 0.2, Low: 0.15, High: 0.25}},
		Pairs: []gain.Unit{{Values: gain.Values{Perfect: 1e4, Status: gain.PairComplete}},
			{Values: gain.Values{Perfect: 9e9, Status: gain.PairIncomplete}}}}
	c.WithCampaign(measured, gain.Run{}, 64)
	if _, rest := partsAddUp(t, c.Split)[Rest]; !rest || c.Split.Basis != FromCampaign || c.Split.Gain != 0.2 ||
		c.Split.PerfectNS != 6.4e6 || c.Split.Parts[0].SavedNS != s.Parts[0].SavedNS ||
		warned(c, "campaign_step_time", "") {
		t.Errorf("by campaign: %+v, %v", c.Split, c.Warnings)
	}
	over := slices.IndexFunc(c.Warnings, func(w router.Warning) bool { return w.Code == "profiler_overhead" })
	overhead, _ := c.Warnings[over].Args["share"].(float64)
	require.Near(t, "overhead of the perfect arm", overhead, (c.Perfect.StepNS/6.4e6 - 1).Float64(), 1e-9)
	c = Compare(normal, perfect, gain.Builds{})
	measured.Metric.Name = "throughput"
	c.WithCampaign(measured, gain.Run{}, 0)
	unsaid := func(w router.Warning) bool { return w.Code == "campaign_step_time" }
	if i := slices.IndexFunc(c.Warnings, unsaid); i < 0 || c.Split.Basis != Profiled || c.Split.Measured == nil ||
		!strings.Contains(caveat.Text(c.Warnings[i]), "throughput in tok/s; for tokens per second, add --step-tokens") {
		t.Errorf("without tokens: %+v, warnings %v", c.Split, c.Warnings)
	}
	if s := Compare(normal, perfect, gain.Builds{"before", "after"}).Split; s.Known() || s.Gain.Defined() ||
		s.Low.Defined() || s.PerfectNS.Defined() || s.Basis != "" || s.Parts == nil {
		t.Errorf("two builds have no gain of balance: %+v", s)
	}
	perfect.Replays = nil
	if s := Compare(normal, perfect, gain.Builds{}).Split; s.Known() || s.Gain.Defined() {
		t.Errorf("without a replay: %+v", s)
	}
}

// A campaign that failed a check lends neither its gain nor its step time, nor does one that ran on other ranks
// or GPUs. A gain whose interval does not meet the predicted one is told.
func TestRefusedCampaign(t *testing.T) {
	normal, perfect := captured(t, "deepseek-ep4-ranks", "normal"), captured(t, "deepseek-ep4-ranks", "perfect")
	for _, k := range []struct {
		result gain.Result
		run    gain.Run
		code   string
	}{
		{gain.Result{Verdict: gain.Invalid}, gain.Run{}, CampaignRefused},
		{between(0.10, 0.70), gain.Run{Ranks: 4, GPUs: "8 × NVIDIA H200"}, ""}, // which holds the predicted 22 %
		{between(0.10, 0.70), gain.Run{Ranks: 2}, CampaignUnlike},
		{between(0.10, 0.70), gain.Run{GPUs: "2 × NVIDIA H200"}, CampaignUnlike},
		{between(0.10, 0.70), gain.Run{GPUs: "4 × NVIDIA H200"}, ""},
		{between(0.10, 0.70), gain.Run{Ranks: 4, GPUs: "2 × NVIDIA H200"}, ""}, // of this node
		{between(0.10, 0.70), gain.Run{Ranks: 4, GPUs: "4 × NVIDIA H100"}, CampaignUnlike},
		{between(0.35, 0.40), gain.Run{}, ""},
	} {
		c := Compare(normal, perfect, gain.Builds{})
		step := c.Split.PerfectNS
		c.WithCampaign(k.result, k.run, 4096)
		if taken := c.Split.Measured != nil; taken != (k.code == "") || !taken && !warned(c, k.code, "") ||
			c.Split.PerfectNS != step {
			t.Errorf("%+v: %+v, %v", k, c.Split, c.Warnings)
		}
		if told := warned(c, CampaignApart, ""); told != (k.result.Gain.Low == 0.35) {
			t.Errorf("%+v: %v", k, c.Warnings)
		}
	}
}

// between is a campaign whose gain lies in an interval.
func between(low, high router.Number) gain.Result {
	return gain.Result{Gain: gain.Gain{Interval: gain.Interval{Estimate: (low + high) / 2, Low: low, High: high}}}
}
