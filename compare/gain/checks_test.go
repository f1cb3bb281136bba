package gain

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
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
		{"few errors", func(c *Recorded) {
			for i := range c.Measurements {
				work(*c, i, WorkRequests, 100)
				work(*c, i, WorkErrors, 1)
			}
		}, CheckWork, Pass, "names:[errors requests]"},
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
		if got := check(t, r, k.check); got.Status != k.status || !strings.Contains(finding(got), k.text) {
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

// Work may differ by a hundredth, concurrency twofold, on either side; a hundredth of either arm's requests may fail,
// and none of unknown many. What a throughput did in its duration is told where nothing else differs.
func TestWorkAtItsTolerance(t *testing.T) {
	for of, want := range map[[4]float64]string{ // requests, failed ones of both arms
		{1000, 1010}: "", {1010, 1000}: "", {1000, 1011}: "unequal", {1011, 1000}: "unequal", {1000, 1000, 10, 0}: "",
		{1000, 1000, 10, 10}: "", {1000, 1000, 11, 0}: "unequal", {1000, 1000, 0, 11}: "unequal", {0, 0, 1, 0}: "unequal",
		{0, 0, 0, 1}: "unequal"} {
		for _, m := range []float64{1, 1.99, 2.01} {
			c := &comparison{Recorded: &Recorded{}, work: map[string][]string{}}
			did := func(requests, errors, concurrency float64) *Measurement {
				return &Measurement{Work: map[string]float64{WorkRequests: requests, WorkErrors: errors, WorkConcurrency: concurrency,
					WorkImplied: 50 / concurrency}}
			}
			c.compareCounts("", did(of[0], of[2], m), did(of[1], of[3], 1))
			if len(c.work["unequal"]) > 0 != (want != "") || len(c.work["setup"]) != map[bool]int{true: 1}[m > 2] {
				t.Errorf("%v, concurrency %v: %v", of, m, c.work)
			}
		}
	}
}

// Arms are of one model, which builds may run otherwise.
func TestSetupsDiffer(t *testing.T) {
	for _, k := range []struct {
		name, normal, other string
		arm                 Arm
		want                int
	}{{"model", "a", "b", "balancer", 1}, {"backend", "a", "b", "balancer", 0}, {"runtime gpu", "a", "b", "balancer", 0},
		{"backend", "a", "b", Perfect, 1}, {"model", "a", "A", Perfect, 0}, {"model", "a", "", Perfect, 0}} {
		c := &comparison{Recorded: &Recorded{}, arm: k.arm, work: map[string][]string{}}
		c.compareSetup(&Measurement{Setup: map[string]string{k.name: k.normal}},
			&Measurement{Setup: map[string]string{k.name: k.other}})
		if len(c.work["setup"]) != k.want {
			t.Errorf("%+v: %v", k, c.work)
		}
	}
}

// noGain wants nothing in a result, as programs see it, that could be read as a gain.
func noGain(t *testing.T, what string, r Result) {
	t.Helper()
	told := regexp.MustCompile(`"(gain|estimate|low|high|slope)":-?\d`).FindAll(require.Value(json.Marshal(r)), -1)
	if r.Verdict != NotComparable || len(told) > 0 {
		t.Errorf("%s: verdict %q, %q", what, r.Verdict, told)
	}
}
