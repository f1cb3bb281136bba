package gain

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// A gain beyond what even ranks can give is doubted where its whole interval is: beyond the counted load, or else
// beyond all load on one of the ranks.
func TestExplainedGain(t *testing.T) {
	for _, k := range []struct {
		low   router.Number
		load  Load
		arm   Arm
		ranks int
		want  bool
	}{{0.101, Load{1.1, true}, Perfect, 2, true}, {0.0999, Load{1.1, true}, Perfect, 2, false},
		{-0.01, Load{1.1, true}, Perfect, 2, false}, {1.01, Load{}, Perfect, 2, true}, {0.99, Load{}, Perfect, 2, false},
		{0.101, Load{1.1, false}, Perfect, 2, false}, {0.101, Load{1.1, true}, "build", 2, false},
		{0.101, Load{1.1, true}, Perfect, 1, false}} {
		c := comparison{arm: k.arm, Recorded: &Recorded{Ranks: k.ranks, Measurements: []Measurement{{Arm: Normal, Load: k.load},
			{Arm: Perfect, Load: Load{3, true}}}}, // which explains nothing
			Comparison: Comparison{Gain: Gain{Interval: Interval{Estimate: 0.2, Low: k.low, High: 4}}}}
		if c.check(); (len(c.checks) > 0 && c.checks[len(c.checks)-1].Name == CheckExplained) != k.want {
			t.Errorf("%+v: %+v", k, c.checks)
		}
	}
	for gain, want := range map[router.Number]int{98.9: 0, 99.1: 1, -0.989: 0, -0.991: 1} { // of builds, over 100 times
		c := comparison{Recorded: &Recorded{}, arm: "after", Comparison: Comparison{Gain: Gain{Interval: Interval{Estimate: gain}}}}
		if c.check(); len(c.checks) != want || want > 0 && c.checks[0].undoes() {
			t.Errorf("builds %v apart: %+v", gain, c.checks)
		}
	}
	for uneven, want := range map[float64]int{0.0299: 0, 0.0301: 1} { // attention
		c := comparison{Recorded: &Recorded{Measurements: []Measurement{{Arm: Perfect, Attention: uneven}}}}
		if c.check(); len(c.checks) != want {
			t.Errorf("attention of %v: %+v", uneven, c.checks)
		}
	}
	for point, want := range map[float64]int{0: 1, 8: 0} { // the load at another point explains nothing here
		c := valid(paired(0.2, 0.21, 0.19, 0.2, 0.22, 0.2))
		c.Ranks = 2
		c.Measurements = append(c.Measurements, Measurement{Point: point, Arm: Normal, Load: Load{1.1, true}})
		if r := Judge(c); len(r.First()) != want || r.Verdict != Significant {
			t.Errorf("%s: %+v", r.Verdict, r.First())
		}
	}
}

// A block counts where it has as many values of both arms, and two at least.
func TestUnequalSegmentsOfABlock(t *testing.T) {
	for order, want := range map[string]string{"ABBA": PairComplete, "ABB": PairIncomplete, "AAB": PairIncomplete,
		"AB": PairIncomplete, "ABBAA": PairIncomplete, "ABBAB": PairIncomplete, "AABBAB": PairComplete} {
		var segments []Measurement
		for i, arm := range order {
			segments = append(segments, Measurement{Arm: Arms[arm-'A'], Position: i, Status: StatusOK, Value: 100})
		}
		if b := Judge(within(segments)).Launches[0].Blocks[0]; b.Status != want {
			t.Errorf("%s: %s, want %s", order, b.Status, want)
		}
	}
}

// Values that do not vary as printed are copies: no verdict rests on them. One other digit is noise.
func TestCopiesDecideNothing(t *testing.T) {
	c := within(blocksOf([]float64{0.3, 0.3}, []float64{0.3, 0.3}, []float64{0.3, 0.3}, []float64{0.3, 0.3}, []float64{0.3, 0.3}))
	for _, digit := range []float64{0, 0.1} {
		c.Measurements[5].Value += digit
		r := Judge(c)
		copies := slices.ContainsFunc(r.First(), func(c Check) bool { return c.Name == CheckCopies })
		if want := map[bool]Verdict{true: Inconclusive, false: Significant}[digit == 0]; r.Verdict != want ||
			copies != (digit == 0) || r.Gain.Low.Defined() == copies {
			t.Errorf("a digit of %v: %s, leading %+v", digit, r.Verdict, r.First())
		}
	}
	c.Measurements = c.Measurements[:4*8] // four launches are too few
	if r := Judge(c); r.Verdict != NoVerdict || !r.Gain.Low.Defined() {
		t.Errorf("four launches: %s, %+v", r.Verdict, r.Gain)
	}
}

// Launches that hold all arms and report each other's values are copies, too; one more digit in each is noise.
func TestRepeatedLaunchesDecideNothing(t *testing.T) {
	c := within(withinCell{launches: 5, blocks: 2, segment: 0.01}.segments(rand.New(rand.NewPCG(5, 5)), 0.2))
	for digit, want := range []Verdict{Inconclusive, Significant} {
		for i := range c.Measurements { // the order of a launch's blocks is the other one's reverse
			c.Measurements[i].Value = c.Measurements[i%8^i/8%2*4].Value * (1 + 1e-9*float64(digit*i))
		}
		if r := Judge(c); r.Verdict != want || r.Gain.Low.Defined() != (digit > 0) {
			t.Errorf("%s, %+v", r.Verdict, r.Gain)
		}
	}
}

// Most values of an arm come again in another launch: one file given six times, three given twice, and the other arm's.
// By chance values of few digits do.
func TestRepeatedValuesDecideNothing(t *testing.T) {
	normal := [6]float64{100.01, 100.22, 99.831, 100.14, 99.952, 100.06}
	for name, c := range map[string]struct {
		normal, other [6]float64
		copies        bool
	}{
		"one six times":    {normal, [6]float64{120.01, 120.01, 120.01, 120.01, 120.01, 120.01}, true},
		"three twice":      {normal, [6]float64{120.01, 120.22, 119.83, 120.01, 120.22, 119.83}, true},
		"the normal arm's": {normal, normal, true},
		"two of six":       {normal, [6]float64{120.01, 120.01, 120.23, 119.94, 120.32, 119.86}, false},
		"few digits":       {[6]float64{100.1, 100.2, 99.8, 100.1, 99.9, 100}, [6]float64{120.1, 120.2, 119.8, 120.1, 120.2, 119.8}, false},
	} {
		r := valid(paired(0, 0, 0, 0, 0, 0))
		for i, m := range r.Measurements {
			r.Measurements[i].Value = map[Arm][6]float64{Normal: c.normal, Perfect: c.other}[m.Arm][m.Unit]
		}
		judged := Judge(r)
		warned := slices.ContainsFunc(judged.First(), func(k Check) bool { return k.Name == CheckCopies })
		if warned != c.copies || (judged.Verdict == Significant) == c.copies || judged.Gain.Low.Defined() == c.copies {
			t.Errorf("%s: %s, leading %+v", name, judged.Verdict, judged.First())
		}
	}
}

// Where more attempts failed than one launch in ten, what fails may choose the result, wherever the interval lies.
func TestSelectedAttemptsDecideNothing(t *testing.T) {
	for why, want := range map[string]Verdict{"selected": Inconclusive, "warn": Significant} {
		for threshold, inside := range map[float64]bool{0.1: false, 0.2: true} {
			c := valid(paired(0.2, 0.21, 0.19, 0.2, 0.22, 0.2))
			c.Checks, c.Threshold = []Check{NewCheck(CheckAttempts, Warn, why)}, threshold
			if r := Judge(c); (r.Verdict == want) == (inside && want != Inconclusive) || r.PairsNeeded.Defined() != inside ||
				(len(r.First()) == 1) != (why == "selected") || r.Undone() != (why == "selected") {
				t.Errorf("%s, %v: %s, leading %+v", why, threshold, r.Verdict, r.First())
			}
		}
	}
}

// A further arm has a share of the ceiling where both gains have intervals, and the ceiling's is above zero.
func TestShareOfACeiling(t *testing.T) {
	of := func(low router.Number) *comparison {
		return &comparison{each: 0.95, whole: []Unit{{Pair: 0, log: 0.1}, {Pair: 1, log: 0.12}},
			Comparison: Comparison{Gain: Gain{Interval: Interval{Low: low}}}}
	}
	for lows, want := range map[[2]router.Number]bool{{0.01, 0.01}: true, {-0.01, 0.01}: true, {0.01, 0}: false,
		{0.01, -0.01}: false, {router.Undefined(), 0.01}: false} {
		if s := of(lows[0]).share(of(lows[1])); s.Estimate.Defined() != want {
			t.Errorf("from %v of a ceiling from %v: %+v", lows[0], lows[1], s)
		}
	}
}

// Steps have times in milliseconds, or tokens per second; 500 tokens at 1000 a second take half a second.
func TestStepTimeOfAMetric(t *testing.T) {
	for _, k := range []struct {
		name, unit    string
		value, tokens float64
		want          router.Number // 0 where it is undefined
	}{{"step_time_mean", "ms", 5, 0, 5e6}, {"ttft", "ms", 5, 0, 0}, {"step_time_mean", "s", 5, 0, 0},
		{"rate", "tok/s", 1000, 500, 5e8}, {"rate", "tokens/s", 1000, 0, 0}, {"rate", "req/s", 1000, 500, 0},
		{"step_time_mean", "ms", 0, 0, 0}} {
		if ns := (Metric{Name: k.name, Unit: k.unit}).stepNS(k.value, k.tokens); ns != k.want && (k.want > 0 || ns.Defined()) {
			t.Errorf("%+v: %v", k, ns)
		}
	}
}
