package gain

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

func TestGainByHand(t *testing.T) {
	// Ratios 1.1 and 1.21: logs λ and 2λ with λ = ln 1.1. Mean 1.5λ: estimate
	// 1.1^1.5 − 1 = 0.153690. One pair of each order has no spread.
	g := Judge(valid(paired(0.1, 0.21))).Gain
	require.Near(t, "estimate", float64(g.Estimate), 0.153690, 5e-7)
	if g.Low.Defined() || g.High.Defined() {
		t.Errorf("2 pairs have no 95 %% interval: %+v", g)
	}
	// One pair of unknown order, and the effect of the order cannot be taken out.
	launches := paired(0.1, 0.11, 0.12, 0.13, 0.1, 0.11)
	if g := Judge(valid(launches)).Gain; g.Method != CrossoverT {
		t.Errorf("known orders by %s", g.Method)
	}
	launches[0].Position = UnknownPosition
	if g := Judge(valid(launches)).Gain; g.Method != PairedT || g.N != 6 {
		t.Errorf("an unknown order by %s of %d", g.Method, g.N)
	}
}

// rejudged is a result stored in testdata, and what Judge makes of its pairs.
func rejudged(t *testing.T, name string) (stored, again Result) {
	text, err := os.ReadFile("../../testdata/" + name)
	if err == nil {
		err = json.Unmarshal(text, &stored)
	}
	require.NoError(t, err)
	c := valid(nil)
	c.Command, c.Metric, c.Proof, c.Differences = stored.Command, stored.Metric, stored.Proof, stored.Differences
	for i, p := range stored.Pairs {
		normal, perfect := 2*i, 2*i+1
		if p.Order == "BA" {
			normal, perfect = perfect, normal
		}
		c.Measurements = append(c.Measurements, Measurement{Unit: p.Pair, Arm: Normal, Position: normal, Status: StatusOK,
			Value: float64(p.Normal)},
			Measurement{Unit: p.Pair, Arm: Perfect, Position: perfect, Status: StatusOK, Value: float64(p.Perfect)})
	}
	return stored, Judge(c)
}

// The pairs of stored campaigns give the stored verdict and gain.
func TestStoredCampaigns(t *testing.T) {
	for name, want := range map[string]struct {
		verdict  Verdict
		gain     [3]float64
		balanced Grade
	}{
		"campaign-qwen3-ep4.json":    {NotSignificant, [3]float64{0.07397, 0.06964, 0.07853}, Measured},
		"campaign-deepseek-ep4.json": {Significant, [3]float64{0.22913, 0.19931, 0.26022}, Measured},
	} {
		stored, r := rejudged(t, name)
		if stored.Verdict != want.verdict || r.Verdict != want.verdict || r.Balance != want.balanced || len(r.Proof) != 8 {
			t.Errorf("%s: %q, stored %q, balance %s", name, r.Verdict, stored.Verdict, r.Balance)
		}
		for i, x := range []router.Number{r.Gain.Estimate, r.Gain.Low, r.Gain.High} {
			require.Near(t, name, float64(x), want.gain[i], 0.00001)
		}
	}
}

// Arms exchanged give the reciprocal, interval and all; of times, of which the lower is better, that is the gain.
func TestGainLaws(t *testing.T) {
	c := valid(paired(.19, .2, .21, .22, .18, .2))
	g := Judge(c).Gain
	for i, m := range c.Measurements {
		c.Measurements[i].Arm = map[Arm]Arm{Normal: Perfect, Perfect: Normal}[m.Arm]
	}
	x := Judge(c).Gain
	require.Near(t, "exchanged", (1+float64(x.Estimate))*(1+float64(g.Estimate)), 1, 1e-12)
	require.Near(t, "exchanged bounds", (1+float64(x.Low))*(1+float64(g.High)), 1, 1e-12)
	c.Metric.HigherIsBetter = false
	l := Judge(c).Gain
	require.Near(t, "times", float64(l.Estimate), float64(g.Estimate), 1e-12)
	require.Near(t, "times, low", float64(l.Low), float64(g.Low), 1e-12)
}
