package answer

import (
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
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
