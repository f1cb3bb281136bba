package answer

import (
	"testing"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// The answer of an open campaign names the launches that are far off, and what to do.
func TestOutlyingLaunches(t *testing.T) {
	const gap, look = "the gain is between −17.1 and +38.7 %.",
		"Look for what disturbed the machine then, and repeat the campaign."
	for _, k := range []struct {
		launches []gain.Outlier
		line     string
		reasons  []string
	}{
		{[]gain.Outlier{{Launch: 7, Change: -0.29}, {Launch: 8, Change: -0.22}},
			"No decision: launches 7 and 8 were slow; " + gap,
			[]string{"They ran back to back: look for what disturbed the machine then."}},
		{[]gain.Outlier{{Launch: 3, Change: 0.4}}, "No decision: launch 3 was fast; " + gap, []string{look}},
		{[]gain.Outlier{{Launch: 3, Change: 0.4}, {Launch: 5, Change: -0.4}},
			"No decision: launches 3 and 5 were far off; " + gap, []string{look}},
		{[]gain.Outlier{{Launch: 1, Change: -0.2}, {Launch: 3, Change: -0.4}, {Launch: 9, Change: -0.4}},
			"No decision: 3 launches were slow; " + gap,
			[]string{"These were launches 1, 3, 9.", look}},
		{[]gain.Outlier{{Launch: gain.UnknownPosition, Change: -0.2}}, "No decision: 1 launch was slow; " + gap,
			[]string{look}},
	} {
		c := &campaign{}
		c.Verdict, c.Metric.HigherIsBetter, c.Threshold, c.Outliers = gain.Inconclusive, true, 0.1, k.launches
		c.Gain = gain.Gain{Estimate: 0.0726, Low: -0.171, High: 0.387, N: 6}
		c.Checks = []gain.Check{{Name: gain.CheckOutliers, Status: gain.Warn, Text: "far off"}}
		a := OfCampaign(c.Result, c.run)
		if a.Line != k.line {
			t.Errorf("%q, want %q", a.Line, k.line)
		}
		if len(a.Reasons) != len(k.reasons) || a.Reasons[0] != k.reasons[0] {
			t.Errorf("%q, want %q", a.Reasons, k.reasons)
		}
	}
}

// An open campaign is run again as it was: of a command, of a server, or of two builds.
func TestCampaignsAreRunAgain(t *testing.T) {
	far := []gain.Outlier{{Launch: 3, Change: -0.4}}
	builds := []gain.ArmGain{{Name: "a"}, {Name: "b"}}
	for _, k := range []struct {
		run     gain.Run
		needed  float64
		far     []gain.Outlier
		arms    []gain.ArmGain
		command string
	}{
		{gain.Run{Treatment: "hook"}, 2000, far, nil, "moebalance bench --pairs 6 --treatment hook -- YOUR_BENCHMARK"},
		{gain.Run{Treatment: "trtllm"}, 2000, nil, nil, "moebalance bench --pairs 6 -- YOUR_BENCHMARK"},
		{gain.Run{Treatment: "trtllm"}, 20, nil, nil, "moebalance bench --pairs 20 -- YOUR_BENCHMARK"},
		{gain.Run{Treatment: "hook", Server: true}, 20, nil, nil,
			"moebalance bench --pairs 20 --treatment hook --server SERVER --ready URL --client CLIENT"},
		{gain.Run{Treatment: "hook", Server: true}, 2000, nil, nil, oneServer},
		{gain.Run{}, 20, nil, builds, "moebalance bench --pairs 20 --arms a,b -- YOUR_BENCHMARK"},
		{gain.Run{}, 2000, nil, builds, ""},
	} {
		r := gain.Result{Design: gain.LaunchPerArm, Verdict: gain.Inconclusive, Outliers: k.far, Arms: k.arms,
			Gain: gain.Gain{Estimate: 0.1, Low: 0, High: 0.2, N: 6}}
		r.PairsNeeded = router.Number(k.needed)
		command := ""
		for _, s := range OfCampaign(r, k.run).Next {
			command = s.Command
		}
		if command != k.command {
			t.Errorf("%+v, %v pairs: have %q, want %q", k.run, k.needed, command, k.command)
		}
	}
}

// How a campaign was judged is a caveat, and traces of its profiled pair are a next step, unless they are shown.
func TestCampaignsSayHowTheyWereJudged(t *testing.T) {
	r := gain.Result{Verdict: gain.Significant, Threshold: 0.1, Gain: gain.Gain{Estimate: 0.2, Low: 0.15, High: 0.25, N: 6}}
	run := gain.Run{Rejudged: []string{"threshold"}, Decided: 6, Traces: []string{"c/a b.json", "c/p.json"}}
	a := OfCampaign(r, run)
	if len(a.Next) != 1 || a.Next[0].Command != "moebalance compare 'c/a b.json' c/p.json" {
		t.Errorf("have %+v", a.Next)
	}
	if len(a.Caveats) != 2 || a.Caveats[0].Code != "rejudged" || a.Caveats[0].Severity != Warn ||
		a.Caveats[1].Code != "sequential" || a.Caveats[1].Severity != Note {
		t.Errorf("have %+v", a.Caveats)
	}
	if a = OfCampaignWith(r, run, &diff.Comparison{}); len(a.Next) != 0 {
		t.Errorf("have %+v", a.Next)
	}
	if a = OfCampaign(r, gain.Run{Decided: router.NoID}); len(a.Next)+len(a.Caveats) != 0 {
		t.Errorf("have %+v, %+v", a.Next, a.Caveats)
	}
}
