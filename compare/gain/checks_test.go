package gain

import (
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

func TestInvalidCampaigns(t *testing.T) {
	work := func(c Recorded, i int, name string, v float64) {
		if c.Measurements[i].Work == nil {
			c.Measurements[i].Work = map[string]float64{}
		}
		c.Measurements[i].Work[name] = v
	}
	gains := []float64{.19, .2, .21, .22, .18, .2}
	cases := []struct {
		what   string
		spoil  func(*Recorded)
		check  string
		status CheckStatus
		text   string
	}{
		{"no proof", func(c *Recorded) { c.Proof = nil }, CheckProof, Fail, "perfect arm: no evidence"},
		{"one arm proved", func(c *Recorded) { c.Proof = c.Proof[2:] }, CheckProof, Fail, "normal arm: no evidence"},
		{"a rank unproved", func(c *Recorded) { c.Proof[3].Grade = None }, CheckProof, Fail, "perfect arm, rank 1"},
		{"all ranks at once", func(c *Recorded) {
			c.Proof = []Proof{{Arm: Normal, Rank: AllRanks, Grade: Measured, Evidence: ""},
				{Arm: Perfect, Rank: AllRanks, Grade: Measured, Evidence: ""}}
		}, CheckProof, Pass, "measured"},
		{"random routing", func(c *Recorded) { c.Chance = true }, CheckProof, Pass, "measured"},
		{"another difference", func(c *Recorded) {
			c.Differences = append(c.Differences, Difference{Kind: "argument", Name: "--batch", Normal: "8",
				Perfect: "16"})
		}, CheckDifference, Fail, `argument --batch: normal "8", perfect "16"`},
		{"no difference", func(c *Recorded) { c.Differences = nil }, CheckDifference, Fail, "untreated"},
		{"not compared", func(c *Recorded) { c.Compared, c.Differences = false, nil }, CheckDifference, Unknown,
			"unrecorded"},
		{"less work", func(c *Recorded) { work(*c, 0, WorkOutputTokens, 1000); work(*c, 1, WorkOutputTokens, 980) },
			CheckWork, Fail, "pair 0: output_tokens: normal 1000, perfect 980"},
		{"a third of the concurrency", func(c *Recorded) {
			work(*c, 0, WorkConcurrency, 90)
			work(*c, 1, WorkConcurrency, 30)
		}, CheckWork, Fail, "concurrent_requests (normal 90, perfect 30)"},
		{"about the same concurrency", func(c *Recorded) {
			work(*c, 0, WorkConcurrency, 90)
			work(*c, 1, WorkConcurrency, 70)
		}, CheckWork, Unknown, "none"},
		{"work of one launch", func(c *Recorded) { work(*c, 0, WorkRequests, 10) }, CheckWork, Warn, "half"},
		{"errors of an arm that alone counts them", func(c *Recorded) {
			work(*c, 1, WorkRequests, 100)
			work(*c, 1, WorkErrors, 50)
		}, CheckWork, Fail, "errors: normal 0, perfect 50"},
		{"a further arm that alone is treated", func(c *Recorded) {
			c.More = []Arm{"x"}
			for i := range c.Differences {
				c.Differences[i].Arm = "x"
			}
		}, CheckDifference, Fail, "untreated"},
		{"errors", func(c *Recorded) {
			for i := range 2 {
				work(*c, i, WorkRequests, 100)
				work(*c, i, WorkErrors, float64(2-2*i))
			}
		}, CheckWork, Fail, "pair 0: errors: normal 2, perfect 0"},
		{"few errors", func(c *Recorded) {
			for i := range c.Measurements {
				work(*c, i, WorkRequests, 100)
				work(*c, i, WorkErrors, 1)
			}
		}, CheckWork, Pass, "names:[errors requests]"},
		{"errors of unknown many", func(c *Recorded) {
			for i := range 2 {
				work(*c, i, WorkErrors, 1)
			}
		}, CheckWork, Fail, "errors"},
		{"caller's check", func(c *Recorded) {
			c.Checks = []Check{{Name: "gpus", Status: Fail,
				Text: "another process on GPU 3"}}
		}, "gpus", Fail, "GPU 3"},
	}
	for _, k := range cases {
		c := valid(paired(gains...))
		c.Ranks, c.Measurements[0].Load = 2, Load{1.1, true}
		k.spoil(&c)
		r := Judge(c)
		got := check(t, r, k.check)
		if got.Status != k.status || !strings.Contains(finding(got), k.text) {
			t.Errorf("%s: %s %q, want %s and %q", k.what, got.Status, finding(got), k.status, k.text)
		}
		if r.Verdict.Refused() != (k.status == Fail) || (r.Verdict == NotComparable) != (k.status == Fail &&
			k.check == CheckWork) {
			t.Errorf("%s: verdict %q", k.what, r.Verdict)
		}
		if r.Verdict == NotComparable {
			noGain(t, k.what, r)
		}
		if r.Verdict == Invalid && (len(r.Failed()) != 1 || !r.Gain.Estimate.Defined()) {
			t.Errorf("%s: want one reason and the gain still shown, have %v and %v", k.what, r.Failed(), r.Gain.Estimate)
		}
	}
}

// noGain wants nothing in a result that could be read as a gain.
func noGain(t *testing.T, what string, r Result) {
	t.Helper()
	numbers := []router.Number{r.Gain.Estimate, r.Gain.Low, r.Gain.High}
	for _, u := range r.Units() {
		numbers = append(numbers, u.Gain)
		for _, b := range u.Blocks {
			numbers = append(numbers, b.Gain)
		}
	}
	for _, s := range r.Secondary {
		numbers = append(numbers, s.Gain.Estimate)
	}
	for _, c := range r.Comparisons {
		if numbers = append(numbers, c.Gain.Estimate); c.Share != nil || c.Dose != nil {
			t.Errorf("%s: %+v", what, c)
		}
	}
	for _, c := range r.Checks {
		if g, ok := c.Args["gain"]; ok {
			t.Errorf("%s: check %s tells a gain of %v", what, c.Name, g)
		}
	}
	if r.Verdict != NotComparable || slices.ContainsFunc(numbers, router.Number.Defined) {
		t.Errorf("%s: verdict %q, gains %v", what, r.Verdict, numbers)
	}
}
