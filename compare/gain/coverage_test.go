package gain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// A kind is a way in which launches of one arm vary: what it adds to the logarithms of their values, in the
// order run; perfect[i] says which arm launch i is of.
type kind struct {
	name string
	add  func(rng *rand.Rand, log []float64, perfect []bool)
	// slow says that some launches are slow, which the gain is not to contain: an interval is then wider
	// than noise alone makes it.
	slow bool
}

// noise of every launch, of which a share of one arm, or of both, is slow by 10 to 40 %.
func disturbed(sd, share float64, both bool) kind {
	k := kind{name: fmt.Sprintf("noise %g %%", 100*sd), slow: share > 0}
	if share > 0 {
		k.name += fmt.Sprintf(", %g %% of %s slow", 100*share, map[bool]string{true: "both arms", false: "one arm"}[both])
	}
	k.add = func(rng *rand.Rand, log []float64, perfect []bool) {
		for i := range log {
			log[i] += sd * rng.NormFloat64()
			if slow, by := rng.Float64() < share, 0.1+0.3*rng.Float64(); slow && (both || !perfect[i]) {
				log[i] += math.Log(1 - by)
			}
		}
	}
	return k
}

// with adds an effect to noise of 1 %.
func with(name string, effect func(rng *rand.Rand, i, n int) float64) kind {
	return kind{name: name, add: func(rng *rand.Rand, log []float64, _ []bool) {
		for i := range log {
			log[i] += 0.01*rng.NormFloat64() + effect(rng, i, len(log))
		}
	}}
}

var kinds = []kind{
	disturbed(0.01, 0, false), disturbed(0.03, 0, false), disturbed(0.10, 0, false),
	with("drift of 5 %", func(_ *rand.Rand, i, n int) float64 { return 0.05 * float64(i) / float64(n) }),
	with("second launch 5 % slower", func(_ *rand.Rand, i, _ int) float64 { return -0.05 * float64(i%2) }),
	with("two clocks 4 % apart", func(rng *rand.Rand, _, _ int) float64 { return -0.04 * float64(rng.IntN(2)) }),
	with("t3 of 1 %", func(rng *rand.Rand, _, _ int) float64 {
		a, b, c := rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()
		return 0.01 * rng.NormFloat64() / math.Sqrt((a*a+b*b+c*c)/3)
	}),
	disturbed(0.01, 0.1, false), disturbed(0.01, 0.2, false), disturbed(0.02, 0.1, false), disturbed(0.02, 0.2, false),
	disturbed(0.05, 0.1, false), disturbed(0.05, 0.2, false), disturbed(0.01, 0.2, true), disturbed(0.05, 0.2, true),
	{name: "10 % of one arm 20 % slower", slow: true, add: func(rng *rand.Rand, log []float64, perfect []bool) {
		for i := range log {
			if log[i] += 0.01 * rng.NormFloat64(); perfect[i] && rng.IntN(10) == 0 {
				log[i] += math.Log(0.8)
			}
		}
	}},
}

// campaign is one of pairs in blocks AB BA or BA AB, drawn, with a true gain.
func (k kind) campaign(rng *rand.Rand, pairs int, gain float64) Recorded {
	log, perfect := make([]float64, 2*pairs), make([]bool, 2*pairs)
	first := 0
	for p := range pairs {
		if first = 1 - first; p%2 == 0 {
			first = rng.IntN(2)
		}
		perfect[2*p], perfect[2*p+1] = first == 1, first == 0
	}
	k.add(rng, log, perfect)
	c := valid(nil)
	for i := range log {
		m := Measurement{Unit: i / 2, Arm: Normal, Position: i, Status: StatusOK, Value: 1000 * math.Exp(log[i])}
		if perfect[i] {
			m.Arm, m.Value = Perfect, m.Value*(1+gain)
		}
		c.Measurements = append(c.Measurements, m)
	}
	return c
}

// outcome is of simulated campaigns the share, of those with an interval, whose interval covers the truth; the
// mean half-width, as a logarithm; and the shares in which something falls out and with each verdict.
type outcome struct {
	covers, half, launches, segments float64
	verdicts                         map[Verdict]float64
}

func simulate(campaigns int, truth float64, draw func() Recorded) outcome {
	share := 1 / float64(campaigns)
	o, defined := outcome{verdicts: map[Verdict]float64{}}, 0.0
	for range campaigns {
		r := Judge(draw())
		if low, high := r.Gain.Low.Float64(), r.Gain.High.Float64(); r.Gain.Low.Defined() {
			if low <= truth && truth <= high {
				o.covers++
			}
			o.half += (math.Log1p(high) - math.Log1p(low)) / 2
			defined++
		}
		o.verdicts[r.Verdict] += share
		for _, c := range r.Checks {
			if c.Status == Warn && c.Name == CheckOutliers {
				o.launches += share
			}
			if c.Status == Warn && c.Name == CheckSegments {
				o.segments += share
			}
		}
	}
	o.covers, o.half = o.covers/defined, o.half/defined
	return o
}

// slack is three standard errors of a share.
func slack(p float64, campaigns int) float64 { return 3 * math.Sqrt(p*(1-p)/float64(campaigns)) }

// Every cell of the package comment's tables, through the code of Judge: between 93.5 and 97.5 %
// of the intervals hold the truth. On the threshold few are decided.
func TestCoverageOfPairs(t *testing.T) {
	for _, k := range kinds {
		line := fmt.Sprintf("%-32s", k.name)
		for _, pairs := range []int{6, 8, 12, 20} {
			rng := rand.New(rand.NewPCG(23, uint64(pairs)))
			o := simulate(campaigns, DefaultThreshold, func() Recorded { return k.campaign(rng, pairs, DefaultThreshold) })
			line += fmt.Sprintf("  %5.1f %5.1f", 100*o.covers, 100*o.half)
			bounds(t, fmt.Sprintf("%s, %d pairs", k.name, pairs), o)
			if decided := o.verdicts[Significant] + o.verdicts[NotSignificant]; decided > 0.06+slack(0.06, campaigns) ||
				strings.HasPrefix(k.name, "noise") && !k.slow && o.launches > 0.03+slack(0.03, campaigns) {
				t.Errorf("%s, %d pairs: decided %.3f, outliers in %.3f", k.name, pairs, decided, o.launches)
			}
		}
		t.Log(line)
	}
}

// Likewise launches that hold all arms. Noise alone gives the width that theory has: a launch's gain has the variance
// of the interaction and of a block's, which is a segment's, over the number of blocks.
func TestCoverageWithinLaunches(t *testing.T) {
	for _, launches := range []int{2, 3, 5, 8} {
		for _, blocks := range []int{1, 2, 4, 6} {
			line := fmt.Sprintf("%d %d", launches, blocks)
			for _, c := range []withinCell{{segment: 0.003}, {segment: 0.015}, {segment: 0.05},
				{segment: 0.015, interaction: 0.02}, {segment: 0.015, slow: 0.1}, {segment: 0.015, slow: 0.1, one: true}} {
				c.launches, c.blocks, c.launch, c.interaction = launches, blocks, 0.05, max(c.interaction, 0.0055)
				rng := rand.New(rand.NewPCG(17, uint64(100*launches+blocks)))
				o := simulate(campaigns, DefaultThreshold,
					func() Recorded { return within(c.segments(rng, math.Log1p(DefaultThreshold))) })
				line += fmt.Sprintf("  %5.1f %5.2f", 100*o.covers, 100*o.half)
				bounds(t, fmt.Sprintf("%+v", c), o)
				block := c.segment * c.segment / float64(c.blocks)
				want := quantiles[launches-1] * meanS[launches-1] * math.Sqrt((c.interaction*c.interaction+block)/float64(launches))
				if c.slow == 0 && math.Abs(o.half/want-1) > 0.35 {
					t.Errorf("%+v: half-width %.4f, want %.4f", c, o.half, want)
				}
			}
			t.Log(line)
		}
	}
}

// Likewise launches of two kinds, of which each pattern comes equally often.
func TestCoverageOfTwoKinds(t *testing.T) {
	for _, blocks := range []int{1, 2, 4} {
		line := fmt.Sprint(blocks)
		for _, launches := range []int{5, 6, 7, 8, 10, 12} {
			c := withinCell{launches: launches, blocks: blocks, launch: 0.05, interaction: 0.0055, segment: 0.015}
			rng := rand.New(rand.NewPCG(17, uint64(100*launches+blocks)))
			o := simulate(campaigns, DefaultThreshold, func() Recorded {
				c.kinds += 0x9e3779b97f4a7c15 // odd: its low bits take every value before one comes again
				return within(c.segments(rng, math.Log1p(DefaultThreshold)))
			})
			line += fmt.Sprintf("  %5.1f %5.2f", 100*o.covers, 100*o.half)
			bounds(t, fmt.Sprintf("%+v", c), o)
		}
		t.Log(line)
	}
}

// bounds wants the coverage between 93.5 and 97.5 %, give or take what so many campaigns show.
func bounds(t *testing.T, name string, o outcome) {
	off := 0.0
	if campaigns < 1000 {
		off = slack(0.95, campaigns)
	}
	if o.covers < 0.935-off || o.covers > 0.975+off {
		t.Errorf("%s: covers %.4f", name, o.covers)
	}
}
