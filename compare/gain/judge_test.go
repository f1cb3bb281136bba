package gain

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// proved is evidence from two ranks of both arms.
func proved() []Proof {
	var p []Proof
	for _, arm := range Arms {
		for rank := range 2 {
			p = append(p, Proof{Arm: arm, Rank: router.OptInt(rank), Grade: Measured, Evidence: "expert counts"})
		}
	}
	return p
}

// valid is a campaign that nothing is wrong with.
func valid(launches []Measurement) Recorded {
	return Recorded{Head: Head{Design: LaunchPerArm, Threshold: DefaultThreshold, Command: "bench", Proof: proved(),
		Metric: Metric{Name: "output_throughput", Unit: "tok/s", HigherIsBetter: true},
		Differences: []Difference{{Kind: "environment", Name: "ENABLE_PERFECT_ROUTER", Normal: "0", Perfect: "1",
			Declared: true}}},
		Measurements: launches, Compared: true}
}

// paired makes ABBA launches whose gains (fractions) are given.
func paired(gains ...float64) []Measurement {
	var launches []Measurement
	for i, g := range gains {
		arms := []Arm{Normal, Perfect}
		if i%2 == 1 {
			arms = []Arm{Perfect, Normal}
		}
		for _, arm := range arms {
			l := Measurement{Unit: i, Arm: arm, Position: len(launches), Status: StatusOK, Value: 100}
			if arm == Perfect {
				l.Value = 100 * (1 + g)
			}
			launches = append(launches, l)
		}
	}
	return launches
}

func check(t *testing.T, r Result, name string) Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q in %+v", name, r.Checks)
	return Check{}
}

// finding is what a check found: its case and values.
func finding(c Check) string { return fmt.Sprint(c.Text, c.Args) }

func TestVerdicts(t *testing.T) {
	cases := []struct {
		what    string
		gains   []float64
		verdict Verdict
	}{
		{"far above", []float64{.19, .2, .21, .22, .18, .2}, Significant},
		{"below, real", []float64{.03, .04, .05, .035, .045, .042}, NotSignificant},
		{"nothing", []float64{.01, -.01, .02, -.02, .005, -.005}, NotSignificant},
		{"slower", []float64{-.03, -.04, -.05, -.02, -.03, -.06}, NotSignificant},
		{"around the threshold", []float64{.06, .16, .13, .1, .18, .05}, Inconclusive},
		{"five pairs", []float64{.5, .51, .52, .5, .53}, NoVerdict},
		{"one pair", []float64{.5}, NoVerdict},
		{"none", nil, NoVerdict},
	}
	for _, k := range cases {
		r := Judge(valid(paired(k.gains...)))
		if r.Verdict != k.verdict || r.Gain.Low.Defined() != (len(k.gains) >= 6) {
			t.Errorf("%s: %q, %+v, want %q", k.what, r.Verdict, r.Gain, k.verdict)
		}
		if r.PairsNeeded.Defined() != (r.Verdict == Inconclusive) {
			t.Errorf("%s: pairs needed %v", k.what, r.PairsNeeded)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("%s: %v", k.what, err)
		}
	}
}

// Bounds that equal the threshold decide nothing, on either side. A build is
// slower from the loss that undoes the threshold: 1/1.1 − 1 = −9.1 % for 10 %.
func TestVerdictAtItsBounds(t *testing.T) {
	up, down := math.Nextafter(0.1, 1), math.Nextafter(0.1, 0)
	for _, k := range []struct {
		low, high float64
		builds    bool
		want      Verdict
	}{{0.1, 0.2, false, Inconclusive}, {up, 0.2, false, Significant},
		{0, 0.1, false, Inconclusive}, {0, down, false, NotSignificant},
		{math.NaN(), math.NaN(), false, Inconclusive},
		{-0.099, -0.092, true, Slower}, {-0.099, -0.090, true, Inconclusive},
		{up, 0.2, true, Faster}, {0.1, 0.2, true, Inconclusive},
		{-0.0099, 0.0099, true, Equal}, {-0.01, 0.0099, true, Inconclusive}, {-0.0099, 0.01, true, Inconclusive},
		{-0.0099, 0.0099, false, NotSignificant}, {-0.2, -0.15, false, NotSignificant}} {
		g := Gain{Interval: Interval{Low: router.Number(k.low), High: router.Number(k.high)}}
		if v := verdictOf(g, 0.1, k.builds); v != k.want {
			t.Errorf("%+v: have %q", k, v)
		}
	}
}

func TestPairsNeeded(t *testing.T) {
	// Of 8 pairs, of equal numbers in both orders, with a mean and a standard deviation about their order.
	needed := func(mean, sd float64) router.Number {
		var gains []float64
		x := sd * math.Sqrt(6.0/8)
		for i := range 8 {
			gains = append(gains, math.Exp(math.Log1p(mean)+x*float64(1-2*(i/2%2))*(1+1e-9*float64(i)))-1) // no copies
		}
		c := valid(paired(gains...)).sorted()
		one := c.compare(Perfect, 0, DefaultConfidence)
		one.Verdict = Inconclusive
		return one.pairsNeeded()
	}
	// ln 1.19 − ln 1.1 = 0.0787; (t₀.₉₇₅,₁₃ = 2.1604 + 0.8416)·0.1/√15 = 0.0775 fits and
	// (2.1788 + 0.8416)·0.1/√14 = 0.0807 does not. From 1.21 on the interval itself would decide.
	if n := needed(0.19, 0.1); n != 15 || needed(0.21, 0.1).Defined() {
		t.Errorf("have %v, want 15, and none of an interval that would decide", n)
	}
	if n := needed(0.1, 0.1); n.Defined() {
		t.Errorf("on the threshold: have %v, want none", n)
	}
}

// Further metrics have the sign of what is better, hold together by Bonferroni, and count over the pairs that have
// them.
func TestSecondaryMetrics(t *testing.T) {
	ttft, itl := Metric{Name: "ttft_mean", Unit: "ms"}, Metric{Name: "itl_mean", Unit: "ms"}
	c := valid(paired(.19, .2, .21, .22, .18, .2))
	for i := range c.Measurements {
		l, slow := &c.Measurements[i], 1.0
		if l.Arm == Normal {
			slow = 1.25 + 0.01*float64(l.Unit)
		}
		l.Secondary = map[Metric]float64{{Name: "broken", HigherIsBetter: true}: math.NaN(), c.Metric: l.Value, ttft: 40 * slow}
		if l.Arm == Normal || l.Unit > 0 {
			l.Secondary[itl] = 5 * slow // one launch lacks it
		}
	}
	r := Judge(c)
	if len(r.Secondary) != 2 || r.Secondary[0].Metric != itl || r.Secondary[1].Metric != ttft {
		t.Fatalf("have %+v, want the two times by name, without the primary metric", r.Secondary)
	}
	few, all := r.Secondary[0].Gain, r.Secondary[1].Gain
	require.Near(t, "confidence", float64(all.Confidence), 1-0.05/2, 1e-12)
	if few.N != 5 || few.Low.Defined() || !(all.Low > 0.2 && all.High < 0.35) || r.Verdict != Significant {
		t.Errorf("%s, %+v", r.Verdict, r.Secondary)
	}
}

func TestPairsAreAllShown(t *testing.T) {
	launches := paired(.1, .2)
	launches[0].Status, launches[0].Note = "timed out", "after 600 s"
	launches = append(launches,
		Measurement{Unit: 0, Arm: Normal, Position: 9, Status: StatusOK, Value: 50, Note: "second attempt"},
		Measurement{Unit: 2, Arm: Perfect, Position: 11, Status: StatusOK, Value: 110}, // half a pair
		Measurement{Unit: 3, Arm: Normal, Position: 12, Status: StatusOK, Value: 0},
		Measurement{Unit: 3, Arm: Perfect, Position: 13, Status: StatusOK, Value: 5})
	r := Judge(valid(launches))
	if len(r.Pairs) != 4 {
		t.Fatalf("have %d pairs, want 4: %+v", len(r.Pairs), r.Pairs)
	}
	first := r.Pairs[0]
	if first.Normal != 50 || first.Order != "BA" || first.Status != PairComplete ||
		first.Note != "normal timed out: after 600 s; second attempt" {
		t.Errorf("retried pair: %+v", first)
	}
	require.Near(t, "its gain", float64(first.Gain), 110.0/50-1, 1e-12)
	half := r.Pairs[2]
	if half.Status != PairIncomplete || half.Normal.Defined() || half.Perfect != 110 || half.Gain.Defined() {
		t.Errorf("half pair: %+v", half)
	}
	if zero := r.Pairs[3]; zero.Status != PairIncomplete {
		t.Errorf("pair without a ratio: %+v", zero)
	}
	if r.Gain.N != 2 {
		t.Errorf("%d pairs enter the gain, want 2", r.Gain.N)
	}
}

func TestJudgeDoesNotDependOnOrderOfInput(t *testing.T) {
	c := valid(paired(.19, .2, .21, .22, .18, .2))
	want := require.Value(json.Marshal(Judge(c)))
	rng := rand.New(rand.NewPCG(7, 2))
	for range 20 {
		m := c.Measurements
		rng.Shuffle(len(m), func(i, j int) { m[i], m[j] = m[j], m[i] })
		rng.Shuffle(len(c.Proof), func(i, j int) { c.Proof[i], c.Proof[j] = c.Proof[j], c.Proof[i] })
		if have := require.Value(json.Marshal(Judge(c))); string(have) != string(want) {
			t.Fatal("the result depends on the order of the launches or proofs")
		}
	}
}

// Whatever a store hands over, the judge answers, and the answer is JSON.
func TestJudgeHostileValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 3))
	values := []float64{0, -1, 1, 100, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64,
		math.SmallestNonzeroFloat64}
	for range 500 {
		c := Recorded{Head: Head{Threshold: 0.1}}
		for range rng.IntN(30) {
			c.Measurements = append(c.Measurements, Measurement{
				Unit: rng.IntN(8) - 1, Arm: []Arm{Normal, Perfect, "other"}[rng.IntN(3)], Position: rng.IntN(6) - 2,
				Status: []string{StatusOK, "failed"}[rng.IntN(2)],
				Value:  values[rng.IntN(len(values))],
				Work:   map[string]float64{WorkErrors: values[rng.IntN(len(values))]},
			})
		}
		r := Judge(c)
		if _, err := json.Marshal(r); err != nil {
			t.Fatalf("%v: %+v", err, c)
		}
		if !r.Verdict.Refused() {
			t.Fatalf("verdict %q without any proof", r.Verdict)
		}
	}
}
