package gain

import (
	"fmt"
	"math"
	"math/rand/v2"
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
func (k kind) campaign(rng *rand.Rand, pairs int, gain float64) Campaign {
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

func simulate(campaigns int, truth float64, draw func() Campaign) outcome {
	share := 1 / float64(campaigns)
	o, defined := outcome{verdicts: map[Verdict]float64{}}, 0.0
	for range campaigns {
		c := draw().sorted()
		r := c.compare(Perfect, 0)
		if low, high := r.gain.Low.Float64(), r.gain.High.Float64(); r.gain.Low.Defined() {
			if low <= truth && truth <= high {
				o.covers++
			}
			o.half += (math.Log1p(high) - math.Log1p(low)) / 2
			defined++
		}
		o.verdicts[r.verdict] += share
		for _, c := range r.checks {
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

// Slow launches seldom make a verdict where the gain is on the threshold and leave one where
// it is far from it, and verdict and interval are as they were without any.
func TestSlowLaunches(t *testing.T) {
	for _, noise := range []float64{0.01, 0.02, 0.05} {
		for _, slow := range []kind{disturbed(noise, 0, false), disturbed(noise, 0.1, false), disturbed(noise, 0.2, false),
			disturbed(noise, 0.1, true), disturbed(noise, 0.2, true)} {
			slowLaunches(t, slow, 50, []int{8, 20})
		}
	}
}

func slowLaunches(t *testing.T, k kind, trials int, sizes []int) {
	for _, pairs := range sizes {
		rng := rand.New(rand.NewPCG(23, uint64(pairs)))
		at := simulate(trials, DefaultThreshold, func() Campaign { return k.campaign(rng, pairs, DefaultThreshold) })
		far := simulate(trials, 2*DefaultThreshold, func() Campaign { return k.campaign(rng, pairs, 2*DefaultThreshold) })
		text := fmt.Sprintf("%s, %d pairs: covers %.1f %%, outliers in %.1f, at the threshold %v, at +20 %% %v", k.name, pairs,
			100*at.covers, 100*at.launches, at.verdicts, far.verdicts)
		t.Log(text)
		switch {
		case at.covers < 0.935-slack(0.935, trials):
			t.Errorf("covers too seldom: %s", text)
		case !k.slow && max(at.verdicts[Significant], at.verdicts[NotSignificant]) > 0.025+slack(0.025, trials),
			at.verdicts[Significant]+at.verdicts[NotSignificant] > 0.05+slack(0.05, trials):
			t.Errorf("decided on the threshold: %s", text)
		case !k.slow && at.launches > 0.03+slack(0.03, trials):
			t.Errorf("without slow launches: %s", text)
		case pairs == 20 && (k.name == "noise 1 %" || k.name == "noise 1 %, 10 % of one arm slow") &&
			far.verdicts[Significant] < 0.9:
			t.Errorf("blind: %s", text)
		}
	}
}

// The intervals of campaigns whose launches hold all arms cover what they say, and are as
// wide as theory has them: a launch's gain has the variance of the interaction and of a
// block's, which is a segment's, over the number of blocks.
func TestWithinLaunches(t *testing.T) {
	all := 0.0
	for _, launches := range []int{2, 3, 5, 8} {
		for _, blocks := range []int{1, 2, 4, 6} {
			all += withinLaunches(t, withinCell{launches, blocks, 0.05, 0.0055, 0.015, 0, false}, 150) / 16
		}
	}
	if math.Abs(all-0.95) > 0.0175 {
		t.Errorf("all cells together cover %.3f", all)
	}
}

// withinLaunches simulates a cell, and returns how often it covers.
func withinLaunches(t *testing.T, c withinCell, campaigns int) float64 {
	rng := rand.New(rand.NewPCG(17, uint64(100*c.launches+c.blocks)))
	o := simulate(campaigns, DefaultThreshold,
		func() Campaign { return within(c.segments(rng, math.Log1p(DefaultThreshold))) })
	t.Logf("%+v: covers %.1f %%, half-width %.2f %%", c, 100*o.covers, 100*o.half)
	if math.Abs(o.covers-0.955) > 0.02+slack(0.95, campaigns) {
		t.Errorf("%+v covers %.3f", c, o.covers)
	}
	block := c.segment * c.segment / float64(c.blocks)
	if c.blocks >= 6 {
		block *= 1.29 // of the median of six
	}
	want := quantiles[c.launches-1] * meanS[c.launches-1] *
		math.Sqrt((c.interaction*c.interaction+block)/float64(c.launches))
	if c.slow == 0 && math.Abs(o.half/want-1) > 0.2 {
		t.Errorf("%+v: half-width %.4f, want %.4f", c, o.half, want)
	}
	if c.slow == 0 && (o.launches > 0.1 || o.segments > 0.1) {
		t.Errorf("%+v: %.2f with an outlying launch, %.2f with a segment, want 0.02", c, o.launches, o.segments)
	}
	return o.covers
}
