package diff

import (
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// partsAddUp checks the split against its own definition and returns its parts by name.
func partsAddUp(t *testing.T, s Split) map[PartName]Part {
	t.Helper()
	parts, gain, saved := map[PartName]Part{}, 0.0, 0.0
	for _, p := range s.Parts {
		parts[p.Name] = p
		gain, saved = gain+p.Gain.Float64(), saved+p.SavedNS.Float64()
		checkNear(t, string(p.Name), (p.Gain * s.PerfectNS).Float64(), p.SavedNS.Float64(), 1e-3)
	}
	checkNear(t, "sum of the parts", gain, s.Gain.Float64(), 1e-9)
	checkNear(t, "sum of the saved times", saved, (s.NormalNS - s.PerfectNS).Float64(), 1e-3)
	checkNear(t, "normal/perfect step − 1", (s.NormalNS/s.PerfectNS).Float64()-1, s.Gain.Float64(), 1e-12)
	return parts
}

// The parts of a predicted gain and of a measured one add up to it; of what launches measured,
// what nothing explains is the rest.
func TestSplit(t *testing.T) {
	normal, perfect := captured(t, "deepseek-ep4-ranks", "normal"), captured(t, "deepseek-ep4-ranks", "perfect")
	c := Compare(normal, perfect)
	parts := partsAddUp(t, c.Split)
	ranks := parts[EvenRanks].SavedNS
	checkNear(t, "alone", c.Split.Placement.GainBound.Float64(), (ranks / (c.Split.NormalNS - ranks)).Float64(), 1e-12)
	if len(parts) != 2 {
		t.Errorf("parts %v", parts)
	}
	// Measured by launches, +50 %: 64 tokens at 1e4 a second take 6.4 ms.
	measured := gain.Result{Metric: gain.Metric{Unit: "tok/s"}, Gain: gain.Gain{Estimate: 0.5, Low: 0.2, High: 0.8},
		Pairs: []gain.Unit{{Values: gain.Values{Perfect: 1e4, Status: gain.PairComplete}}}}
	c.WithCampaign(measured, 64)
	parts = partsAddUp(t, c.Split)
	if _, known := parts[Rest]; !known {
		t.Errorf("no rest in %v", parts)
	}
	checkNear(t, "alone, of 9.6 ms", c.Split.Placement.GainBound.Float64(), (ranks / (9.6e6 - ranks)).Float64(), 1e-9)
	if c = CompareBuilds(normal, perfect, gain.Builds{"before", "after"}); c.Split.Gain.Defined() ||
		c.Split.Parts == nil {
		t.Errorf("two builds have no gain of balance: %+v", c.Split)
	}
	k, p := c.Ceiling, c.Prediction
	for name, v := range map[string]router.Number{
		"bound": k.GainBound, "gain": p.Gain, "low": p.Low, "high": p.High,
		"saved": p.SavedNS, "loss": p.LossNS, "step": p.StepNS,
	} {
		if v.Defined() {
			t.Errorf("two builds need no balance, and %s is %v", name, v)
		}
	}
	if p.StepBasis != "" {
		t.Errorf("two builds: prediction %+v", p)
	}
}
