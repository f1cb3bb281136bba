package diff

import (
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/trace"
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

// A perfect step takes 40 on the wall. Ranks save 10 (the slowest of 30 against 20), the
// perfect router costs 2 more: +20 % = 25 % − 5 %. Alone, ranks leave 38 of the 48 that a
// normal step takes.
func TestSplitByHand(t *testing.T) {
	normal, perfect := alternating()
	for step := range router.OptInt(3) {
		for rank := range 2 {
			perfect.Cells = append(perfect.Cells, cell(rank, step, 3, trace.PhaseRouter, 2, 0))
		}
	}
	c := Compare(normal, perfect)
	if len(c.Split.Parts) > 0 || c.Split.Gain.Defined() {
		t.Errorf("no step time is known: %+v", c.Split)
	}
	for step := range router.OptInt(3) {
		perfect.StepTimes = append(perfect.StepTimes, trace.StepTime{Step: step, WallNS: 40})
	}
	c = Compare(normal, perfect)
	parts := partsAddUp(t, c.Split)
	for name, want := range map[PartName]float64{EvenRanks: 0.25, EvenExperts: 0, OtherCompute: -0.05} {
		checkNear(t, string(name), parts[name].Gain.Float64(), want, 1e-12)
	}
	checkNear(t, "alone", c.Split.Placement.GainBound.Float64(), 10.0/38, 1e-12)
	if _, known := parts[OtherWaiting]; known {
		t.Error("waiting is unknown, and is a part")
	}
	// Measured by launches, +50 %: 64 tokens at 1.6e9 a second take 40 ns, too.
	measured := gain.Result{Metric: gain.Metric{Unit: "tok/s"}, Gain: gain.Gain{Estimate: 0.5, Low: 0.4, High: 0.6},
		Pairs: []gain.Pair{{Perfect: 1.6e9, Status: gain.PairComplete}}}
	c.WithCampaign(measured, 64)
	parts = partsAddUp(t, c.Split)
	checkNear(t, "rest", parts[Rest].Gain.Float64(), 0.3, 1e-12)
	checkNear(t, "alone, of 60", c.Split.Placement.GainBound.Float64(), 10.0/50, 1e-12)
	if c = CompareBuilds(normal, perfect, gain.Builds{"before", "after"}); c.Split.Gain.Defined() ||
		c.Split.Parts == nil {
		t.Errorf("two builds have no gain of balance: %+v", c.Split)
	}
	k, p := c.Ceiling, c.Prediction
	for name, v := range map[string]router.Number{
		"bound": k.GainBound, "gain": p.Gain, "low": p.Low, "high": p.High,
		"saved": p.SavedNS, "loss": p.LossNS, "experts": p.ExpertsNS, "other": p.OtherNS, "step": p.StepNS,
	} {
		if v.Defined() {
			t.Errorf("two builds need no balance, and %s is %v", name, v)
		}
	}
	if p.StepBasis != "" || p.LateHosts {
		t.Errorf("two builds: prediction %+v", p)
	}
}
