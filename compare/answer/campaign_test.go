package answer

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// launchesOf is a campaign whose launches hold all arms; each has blocks of these log gains.
func launchesOf(launches ...[]float64) gain.Campaign {
	c := gain.Campaign{Design: gain.WithinLaunch, Metric: gain.Metric{Name: "throughput", HigherIsBetter: true},
		Criteria: gain.Criteria{Threshold: gain.DefaultThreshold, Confidence: 0.95, Tolerance: gain.DefaultTolerance}}
	for _, arm := range gain.Arms {
		c.Proof = append(c.Proof, gain.Proof{Arm: arm, Rank: gain.AllRanks, Grade: gain.Measured})
	}
	for i, blocks := range launches {
		for b, log := range blocks {
			for place, side := range []int{0, 1, 1, 0} {
				value := 100.0
				if side ^= b % 2; side == 1 {
					value *= math.Exp(log)
				}
				c.Launches = append(c.Launches, gain.Launch{Pair: i, Block: b, Arm: gain.Arms[side],
					Position: 4*b + place, Status: gain.StatusOK, Value: value})
			}
		}
	}
	return c
}

// What is said of launches that hold all arms: line, basis, numbers, reasons and what to do.
func TestAnswersWithinLaunches(t *testing.T) {
	failed := launchesOf([]float64{0.2}, []float64{0.2})
	for i := range failed.Launches {
		failed.Launches[i].Status = "timed out"
	}
	for name, k := range map[string]struct {
		campaign           gain.Campaign
		verdict            gain.Verdict
		line, basis, wants string
	}{
		"significant": {launchesOf([]float64{0.19, 0.21}, []float64{0.20, 0.24}, []float64{0.21, 0.19}),
			gain.Significant, "Balanced routing is 23.0 % faster.",
			"interval of 3 launches above the threshold of 10 % · balance measured",
			"launches that gain 3 of 3;smallest gain of a launch 22.1 %;moebalance report"},
		"open": {launchesOf([]float64{0.10, 0.12}, []float64{0.13, 0.15}, []float64{0.08, 0.1}), gain.Inconclusive,
			"Undecided: balanced routing is 5.2 to 19.2 % faster.",
			"interval of 3 launches contains the threshold of 10 % · balance measured",
			"About 18 launches in all (7 to 607, as the spread between launches is known) should decide.;" +
				"moebalance bench --launches 18 --treatment hook -- YOUR_BENCHMARK"},
		"one far off": {launchesOf([]float64{0.1, 0.1}, []float64{0.101, 0.101}, []float64{0.102, 0.102},
			[]float64{0.099, 0.099}, []float64{0.4, 0.4}), gain.Inconclusive,
			"No decision: launch 4 was far off; the gain is between −0.6 and +38.6 %.",
			"interval of 5 launches contains the threshold of 10 % · balance measured", "Look for what"},
		"one launch": {launchesOf([]float64{0.19, 0.21, 0.19, 0.21}), gain.NoVerdict,
			"One launch cannot decide: balanced routing is 22.1 % faster.",
			"one launch, 4 blocks · launch sd of 0.6 points assumed · balance measured",
			"gain, widened interval 22.1 % (19.5 to 24.8 %);blocks that gain 4 of 4;" + oneServer},
		"one quiet launch": {launchesOf([]float64{0.001, -0.001}), gain.NoVerdict,
			"One launch cannot decide: speed changes by −1.7 % to +1.7 %.",
			"one launch, 2 blocks · launch sd of 0.6 points assumed · balance measured", ""},
		"one block": {launchesOf([]float64{0.2}), gain.NoVerdict,
			"No decision: 1 block is too few for an interval (at least 2).",
			"one launch, 1 block · launch sd of 0.6 points assumed · balance measured", ""},
		"failed": {failed, gain.Inconclusive, "No decision: no launch has a complete block.",
			"no interval from 0 launches · balance measured", ""},
	} {
		r := gain.Judge(k.campaign)
		a := OfCampaign(r, gain.Run{Folder: "c", Launches: 3})
		if r.Verdict != k.verdict || string(a.Verdict) != string(k.verdict) || a.Line != k.line || a.Basis != k.basis {
			t.Errorf("%s: %s (%s)\n%q, want\n%q\n%q, want\n%q", name, a.Verdict, r.Verdict, a.Line, k.line, a.Basis, k.basis)
		}
		if words, runes := len(strings.Fields(a.Line)), utf8.RuneCountInString(a.Line); words > MaxWords || runes > MaxRunes {
			t.Errorf("%s: a line of %d words, %d characters", name, words, runes)
		}
		text := strings.Join(a.Reasons, "\n")
		for _, n := range a.Numbers {
			text += "\n" + n.String()
		}
		for _, n := range a.Next {
			text += "\n" + n.Command
		}
		for _, want := range strings.Split(k.wants, ";") {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q: %s", name, want, text)
			}
		}
	}
}

// Points, shares and crossovers in words.
func TestWordsOfCampaigns(t *testing.T) {
	var points []gain.PointGain
	for i := range 30 {
		points = append(points, gain.PointGain{Name: "n", Value: float64(i + 1),
			Verdict: []gain.Verdict{gain.NotSignificant, gain.Significant}[i/28]})
	}
	at := func(x gain.Crossover, arms ...gain.ArmGain) string {
		x.Name, x.Value, x.Confidence = "n", 4.5, 0.95
		return crossover(gain.Result{Crossover: &x, Points: points[:3], Arms: arms})
	}
	none := router.Undefined()
	needs := func(n router.Number) string {
		text, ok := toDecide(gain.Result{PairsNeeded: n, PairsNeededLow: 8, PairsNeededHigh: 6258}, "pair")
		if ok != (n < manyPairs) {
			t.Errorf("%v pairs: %v", n, ok)
		}
		return text
	}
	for want, have := range map[string]string{
		"imbalance significant at n 29, 30; not significant at 28 of 30 points between n 1 and 28": byVerdict(points),
		"crossover at n 4.50 (95 % interval 2.00 to 8.00): below it load balance costs speed; measured at 3 points, " +
			"interpolated between them": at(gain.Crossover{Why: gain.Crosses, Below: true, Low: 2, High: 8}),
		"crossover at n 4.50 (95 % interval from 2.00 to beyond the largest point): above it after is slower than before; " +
			"measured at 3 points, interpolated between them": at(gain.Crossover{Why: gain.Crosses, Low: 2, High: none},
			gain.ArmGain{Name: "before"}, gain.ArmGain{Name: "after"}),
		"measured at 3 points: the estimates have one sign, so no crossover is shown": at(gain.Crossover{Why: gain.OneSign}),
		"Balancer recovers 50.0 % of the ceiling, 95 % interval 40.0 % to 60.0 %.": shareOf(gain.Share{Arm: "balancer",
			Estimate: 0.5, Low: 0.4, High: 0.6, Confidence: 0.95}),
		"Balancer: no share of the ceiling, because the gain of balanced routing is not above zero.": shareOf(
			gain.Share{Arm: "balancer", Estimate: none}),
		"each 10 % of load imbalance costs 1.3 % of time (1.1 % to 1.5 %)": doses(gain.Result{
			Dose: &gain.Dose{Slope: 0.13, Low: 0.11, High: 0.15}}),
		"each 10 % of load imbalance costs about 1.3 % of time at 8 tokens; nothing that shows at 64 tokens": doses(gain.Result{
			Dose: &gain.Dose{Slope: 0.13}, Points: []gain.PointGain{
				{Name: "tokens", Value: 8, Dose: &gain.Dose{Slope: 0.13, Low: none, High: none}},
				{Name: "tokens", Value: 64, Dose: &gain.Dose{Slope: 0.005, Low: -0.01, High: 0.02}}, {Name: "tokens", Value: 512}}}),
		"each 10 % of load imbalance costs 1.3 % of time (1.1 % to 1.5 %) at n 3; nothing at n 1": doses(gain.Result{
			Points: []gain.PointGain{{Name: "n", Value: 1, Dose: &gain.Dose{Slope: -0.008, Low: -0.013, High: -0.004}},
				{Name: "n", Value: 3, Dose: &gain.Dose{Slope: 0.13, Low: 0.11, High: 0.15}}}}),
		"load imbalance costs nothing at n 1": doses(gain.Result{
			Points: []gain.PointGain{{Name: "n", Value: 1, Dose: &gain.Dose{Slope: -0.008, Low: -0.013, High: -0.004}}}}),
		"load imbalance costs nothing": doses(gain.Result{Dose: &gain.Dose{Slope: -0.008, Low: -0.013, High: -0.004}}),
		"load imbalance costs 5.0 % of time with a rank max/mean of 1.20, nothing that shows with 2.00 at n 3": doses(gain.Result{
			Points: []gain.PointGain{{Name: "n", Value: 3, Dose: &gain.Dose{Slope: -0.01, Low: -0.03, High: -0.001, Bent: true,
				Arms: []gain.DoseArm{{Arm: gain.Perfect, MaxOverMean: 1, Time: 1, Low: 1, High: 1, Fitted: true},
					{Arm: "a", MaxOverMean: 1.2, Time: 1.05, Low: 1.04, High: 1.06, Fitted: true},
					{Arm: "b", MaxOverMean: 2, Time: 1, Low: 0.99, High: 1.01, Fitted: true}}}}}}),
		"each 10 % of load imbalance costs between −0.1 % and +0.2 % of time": doses(gain.Result{
			Dose: &gain.Dose{Slope: 0.005, Low: -0.01, High: 0.02}}),
		"load imbalance costs 5.8 % of time with a rank max/mean of 1.20, 18.1 % of time with 2.00 at n 3": doses(gain.Result{
			Points: []gain.PointGain{{Name: "n", Value: 3, Dose: &gain.Dose{Slope: 0.17, Low: 0.16, High: 0.18, Bent: true,
				Arms: []gain.DoseArm{{Arm: gain.Perfect, MaxOverMean: 1, Time: 1, Fitted: true},
					{Arm: "a", MaxOverMean: 1.2, Time: 1.058, Low: 1.056, Fitted: true}, {Arm: gain.Normal, MaxOverMean: 1.6, Time: 1.127},
					{Arm: "b", MaxOverMean: 2, Time: 1.181, Low: 1.177, Fitted: true}}}}}}),
		"at n 1 the gain is −2.4 % (−3.4 % to −1.4 %); at n 2 the gain is +1.0 % (−1.0 % to +2.0 %)": elsewhere(gain.Result{
			Gain: gain.Gain{Estimate: 0.2, Low: 0.1}, Points: []gain.PointGain{{Name: "n", Value: 1, Gain: gain.Gain{Estimate: -0.024,
				Low: -0.034, High: -0.014}}, {Name: "n", Value: 2, Gain: gain.Gain{Estimate: 0.01, Low: -0.01, High: 0.02}},
				{Name: "n", Value: 3, Gain: gain.Gain{Estimate: 0.2, Low: 0.1, High: 0.3}}}}),
		"about 12 pairs in all (8 to 1,000 or more, as the spread between pairs is known)": needs(12),
		"": needs(none) + needs(1000),
	} {
		if have != want {
			t.Errorf("%q, want %q", have, want)
		}
	}
}

// Of the parts of a check those speak on which its status rests, and none where all say the same.
func TestWordsOfParts(t *testing.T) {
	part := func(name string, status gain.CheckStatus, text string) gain.Check {
		return gain.Check{Name: name, Status: status, Text: text}
	}
	for want, parts := range map[string][]gain.Check{
		"n 2: b": {part("n 1", gain.Pass, "a"), part("n 2", gain.Warn, "b")},
		"b":      {part("n 1", gain.Warn, "b"), part("n 2", gain.Warn, "b")},
		"n 1 (A), n 2: b": {{Name: "n 1", Status: gain.Warn, Parts: []gain.Check{part("A", gain.Warn, "b"), part("B", gain.Pass, "c")}},
			{Name: "n 2", Status: gain.Warn, Parts: []gain.Check{part("B", gain.Warn, "b")}}},
		"n 1, n 2: b": {part("n 1", gain.Warn, "b"), part("n 2", gain.Warn, "b"), part("n 3", gain.Pass, "b")},
	} {
		if have := said(gain.Check{Name: "other_load", Status: gain.Warn, Parts: parts}); have != want {
			t.Errorf("%q, want %q", have, want)
		}
	}
	r := Worded(gain.Judge(launchesOf([]float64{0.2, 0.2}, []float64{0.2, 0.2})))
	for _, c := range r.Checks {
		if c.Text == "" || strings.Contains(c.Text, "{") || strings.Contains(c.Text, "_") && c.Text != c.Name {
			t.Errorf("%s: %q", c.Name, c.Text)
		}
	}
}
