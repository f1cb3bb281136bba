package answer

import (
	"math"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// launchesOf is a campaign whose launches hold all arms; each has blocks of these log gains.
func launchesOf(launches ...[]float64) gain.Result {
	c := gain.Recorded{Head: gain.Head{Design: gain.WithinLaunch, Threshold: gain.DefaultThreshold,
		Metric: gain.Metric{Name: "throughput", HigherIsBetter: true}}}
	for _, arm := range gain.Arms {
		c.Proof = append(c.Proof, gain.Proof{Arm: arm, Rank: gain.AllRanks, Grade: gain.Measured})
	}
	for i, blocks := range launches {
		for b, log := range blocks {
			for place, side := range []int{0, 1, 1, 0} {
				value := 100 * math.Exp(0.001*float64(b)+1e-5*float64(i*(len(blocks)-1))) // of one block: copies
				if side ^= b % 2; side == 1 {
					value *= math.Exp(log)
				}
				c.Measurements = append(c.Measurements, gain.Measurement{Unit: i, Block: b, Arm: gain.Arms[side],
					Position: 4*b + place, Status: gain.StatusOK, Value: value})
			}
		}
	}
	return gain.Judge(c)
}

func TestAnswersWithinLaunches(t *testing.T) {
	const again = "moebalance bench --treatment hook --server SERVER"
	for line, k := range map[string]struct {
		result        gain.Result
		verdict       gain.Verdict
		reasons, next string
	}{
		"Balanced routing is 22.9 % faster.": {launchesOf([]float64{0.19, 0.21}, []float64{0.20, 0.22},
			[]float64{0.21, 0.19}, []float64{0.2, 0.21}, []float64{0.21, 0.22}), gain.Significant, "",
			"moebalance report -o report.html c"},
		"Undecided: balanced routing is ": {launchesOf([]float64{0.10, 0.12}, []float64{0.13, 0.15}, []float64{0.08, 0.1},
			[]float64{0.08, 0.1}, []float64{0.1, 0.13}), gain.Inconclusive, "launches in all would decide", "--launches "},
		"1 launch is far from the others; the gain is between": {launchesOf([]float64{0.1, 0.1}, []float64{0.101, 0.101},
			[]float64{0.102, 0.102}, []float64{0.099, 0.099}, []float64{0.4, 0.4}), gain.Inconclusive,
			"Launch 4: the gain differs by +34.9 %", ""},
		"No decision: launches report the same values.": {launchesOf([]float64{0.2}, []float64{0.2},
			[]float64{0.2}, []float64{0.2}, []float64{0.2}), gain.Inconclusive, "Equal values are copies",
			"--table checks"},
		"1 launch cannot decide: balanced routing is 22.1 % faster.": {launchesOf([]float64{0.19, 0.21, 0.19, 0.21}),
			gain.NoVerdict, "", again},
		"1 launch cannot decide: the gain is between −1.7 % and +1.7 %.": {launchesOf([]float64{0.001, -0.001}),
			gain.NoVerdict, "", again},
		"No decision: 1 complete launch (of at least 5).": {launchesOf([]float64{0.2}), gain.NoVerdict, "", ""},
	} {
		a := OfCampaign(k.result, gain.Run{Folder: "c", Launches: 3})
		check(t, line, a, Verdict(k.verdict), line, k.reasons, k.next)
	}
}

// judged is a result of pairs with this interval.
func judged(v gain.Verdict, low, high router.Number) gain.Result {
	r := gain.Result{Head: gain.Head{Threshold: 0.1}, Verdict: v, Balance: gain.Measured}
	r.Gain = gain.Gain{Interval: gain.Interval{Estimate: (low + high) / 2, Low: low, High: high}, N: 6}
	r.Metric.HigherIsBetter = true
	return r
}

// What a campaign says and what to do, by its verdict and by how it was run.
func TestAnswersOfPairs(t *testing.T) {
	with := func(r gain.Result, change func(*gain.Result)) gain.Result { change(&r); return r }
	open := judged(gain.Inconclusive, -0.17, 0.39)
	needs := func(n router.Number) gain.Result {
		return with(open, func(r *gain.Result) { r.PairsNeeded = n })
	}
	far := with(needs(2000), func(r *gain.Result) {
		r.Checks = []gain.Check{gain.NewCheck(gain.CheckOutliers, gain.Warn, "launches", "launches", []int{7, 8}, "changes",
			[]float64{-0.3, -0.2})}
	})
	invalid := with(judged(gain.Invalid, 0, 0), func(r *gain.Result) {
		r.Balance = gain.None
		r.Checks = []gain.Check{{Name: gain.CheckProof, Status: gain.Fail, Text: "no proof"}}
	})
	hook := gain.Run{Treatment: "hook"}
	server := gain.Run{Treatment: "hook", Server: true, Again: "--server s --ready u --client c"}
	for name, k := range map[string]struct {
		result              gain.Result
		run                 gain.Run
		line, reasons, next string
	}{
		"unshown": {judged(gain.NotSignificant, -0.01, 0.02), hook,
			"No gain shown: speed changes by −1.0 % to +2.0 %, below the 10 % threshold.", "", ""},
		"few": {with(open, func(r *gain.Result) { r.Gain.Low, r.Gain.N = router.Undefined(), 2 }), hook,
			"No decision: 2 complete pairs (of at least 6).", "", "--pairs 6 --treatment hook"},
		"none": {with(open, func(r *gain.Result) { r.Gain.Estimate = router.Undefined() }), hook, "No decision: ",
			"", ""},
		"pairs": {needs(20), gain.Run{Treatment: "trtllm"}, "between −17.0 % and +39.0 %",
			"About 20 pairs in all would decide", "moebalance bench --pairs 20 -- YOUR_BENCHMARK"},
		"server": {needs(2000), server, "", "", "moebalance bench --pairs 6 --treatment hook --server s --ready u --client c"},
		"builds": {with(needs(20), func(r *gain.Result) { r.Builds = gain.Builds{"a", "b"} }), gain.Run{}, "", "",
			"--pairs 20 --arm a --arm b -- YOUR_BENCHMARK {arm}"},
		"refused builds": {with(judged(gain.NotComparable, 0, 0), func(r *gain.Result) {
			r.Builds = gain.Builds{"a", "b"}
		}), gain.Run{}, "", "", "moebalance bench --arm a --arm b --points "},
		"slow": {far, hook, "2 launches are far from the others; the gain is between", "", ""},
		"chosen": {with(judged(gain.Inconclusive, 0.2, 0.3), func(r *gain.Result) {
			r.Checks = []gain.Check{gain.NewCheck(gain.CheckAttempts, gain.Warn, "selected", "failed", 2, "launches", 12)}
		}), gain.Run{Folder: "c"}, "No decision: what fails may choose", "2 attempts gave no result in 12 launches", "--table checks"},
		"unproved trt": {invalid, gain.Run{Treatment: "trtllm"}, "Invalid: no proof.", "",
			"moebalance bench -- mpirun -n RANKS trtllm-llmapi-launch YOUR_BENCHMARK"},
		"unproved rows":   {invalid, gain.Run{Format: "iteration-log"}, "", "", "moebalance bench -- mpirun -n RANKS trtllm"},
		"unproved client": {invalid, gain.Run{Format: "llmperf/json"}, "", "", "moebalance bench --treatment hook --server"},
		"unproved llama":  {invalid, gain.Run{Format: "llama-bench/json"}, "", "", "moebalance bench -- YOUR_BENCHMARK"},
		"both balanced": {with(invalid, func(r *gain.Result) {
			r.Checks = []gain.Check{gain.NewCheck(gain.CheckProof, gain.Fail, "unproved", "missing",
				[]string{"normal arm: ran balanced, too: report: perfect router"})}
		}), gain.Run{Treatment: "trtllm"}, "normal arm: ran balanced, too", "", "moebalance bench -- YOUR_BENCHMARK"},
		"failed planner": {with(invalid, func(r *gain.Result) {
			r.Checks = []gain.Check{gain.NewCheck(gain.CheckProof, gain.Fail, "unproved", "missing", []string{"a, but the engine says b"})}
		}), gain.Run{Treatment: "trtllm"}, "but the engine says b", "", "moebalance bench -- YOUR_BENCHMARK"},
		"unproved env": {invalid, gain.Run{Treatment: "env:X=1"}, "Invalid: no proof.", "", "--treatment hook"},
	} {
		a := OfCampaign(k.result, k.run)
		check(t, name, a, Verdict(k.result.Verdict), k.line, k.reasons, k.next)
		if g := k.result.Gain; strings.Contains(a.Basis, "contains") && g.Low > 0.1 {
			t.Errorf("%s: %s", name, a.Basis)
		}
	}
}

// What load imbalance costs, with the interval of its slope, or the largest load where no line goes through the arms.
func TestCostOfLoad(t *testing.T) {
	none := router.Undefined()
	arms := []gain.DoseArm{{Load: gain.Load{MaxOverMean: 1}, Time: 1, Fitted: true},
		{Load: gain.Load{MaxOverMean: 2}, Time: 1.18, Low: 1.17, Fitted: true}}
	for want, d := range map[string]gain.Dose{
		"Each 10 % of load imbalance costs 1.0 % of time (0.5 % to 1.5 %).":  {Slope: 0.1, Low: 0.05, High: 0.15},
		"Each 10 % of load imbalance costs 1.0 % of time.":                   {Slope: 0.1, Low: none, High: none},
		"Each 10 % of load imbalance costs 1.0 % of time (−0.5 % to 1.5 %).": {Slope: 0.1, Low: -0.05, High: 0.15},
		"Load imbalance of max/mean 2.00 costs 18.0 % of time.": {Slope: 0.1, Low: -0.05, High: 0.15,
			Bent: true, Arms: arms},
		"": {Slope: 0.1, Bent: true},
	} {
		r := judged(gain.Significant, 0.2, 0.26)
		r.Comparisons = []gain.Comparison{{Arm: gain.Perfect, Leads: true, Dose: &d}}
		if have := OfCampaign(r, gain.Run{}).Reasons; strings.Join(have, " ") != want {
			t.Errorf("have %q, want %q", have, want)
		}
	}
}

// What even ranks save stands beside a measured gain; where it is clearly less the answer says so.
func TestPlacementAloneBesideTheCampaign(t *testing.T) {
	measured := judged(gain.Significant, 0.2, 0.26).Gain
	for high, reason := range map[router.Number]string{0.19: "Do not expect the 23.0 % from placement: even ranks save " +
		"about 80.0 µs of 200 µs per step.", 0.2: ""} {
		a := OfComparison(&diff.Comparison{Comparable: true, Split: diff.Split{Basis: diff.FromCampaign,
			Parts: []diff.Part{{SavedNS: 8e4, Low: 0.07, High: high}}, Measured: &measured, Verdict: gain.Significant,
			Gain: 0.2, Low: 0.1, High: 0.3, PerfectNS: 1e6}}, Compared{})
		check(t, "measured", a, Verdict(gain.Significant), "Balanced routing is 23.0 % faster.", reason, "moebalance place")
		if last := a.Numbers[len(a.Numbers)-1]; last.Label != "saved by even ranks" || last.Value != 8e4 {
			t.Errorf("%+v", last)
		}
	}
}
