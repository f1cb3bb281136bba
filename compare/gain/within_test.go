package gain

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A withinCell is a kind of campaign whose launches hold all arms: standard deviations of
// a launch, of what it adds to the gain, and of a segment; and which share of the segments
// is 25 % slower.
type withinCell struct {
	launches, blocks             int
	launch, interaction, segment float64
	slow                         float64
	one                          bool   // of the normal arm alone
	kinds                        uint64 // of launches, by its bits: they gain nothing or twice as much; 0: all the same
}

// segments are a campaign of one log gain, ABBA and BAAB in turn.
func (c withinCell) segments(rng *rand.Rand, gain float64) (out []Measurement) {
	for i := range c.launches {
		base, extra := c.launch*rng.NormFloat64(), c.interaction*rng.NormFloat64()
		if c.kinds > 0 {
			extra += gain * (1 - 2*float64(c.kinds>>i&1))
		}
		for b := range c.blocks {
			for place, side := range []int{0, 1, 1, 0} {
				side ^= (i + b) % 2
				x := base + c.segment*rng.NormFloat64()
				if side == 1 {
					x += gain + extra
				}
				if rng.Float64() < c.slow && (side == 0 || !c.one) {
					x += math.Log(0.75)
				}
				out = append(out, Measurement{Unit: i, Block: b, Arm: Arms[side], Position: 4*b + place, Status: StatusOK,
					Value: 1000 * math.Exp(x)})
			}
		}
	}
	return out
}

// campaign is one of such segments.
func within(segments []Measurement) Recorded {
	c := valid(segments)
	c.Design, c.Differences, c.Compared = WithinLaunch, nil, false
	return c
}

// The 97.5th percentiles of Student's t by degrees of freedom, from a printed table, and the
// mean of s/σ for normal values (c₄).
var (
	quantiles = map[int]float64{1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 7: 2.3646}
	meanS     = map[int]float64{1: 0.7979, 2: 0.8862, 4: 0.9400, 7: 0.9650}
)

// blocksOf are segments of launches whose blocks have given log gains, on a base of their own.
func blocksOf(launches ...[]float64) (out []Measurement) {
	for i, blocks := range launches {
		for b, log := range blocks {
			for place, side := range []int{0, 1, 1, 0} {
				value := 100 * float64(i+1)
				if side ^= b % 2; side == 1 {
					value *= math.Exp(log)
				}
				out = append(out, Measurement{Unit: i, Block: b, Arm: Arms[side], Position: 4*b + place, Status: StatusOK,
					Value: value})
			}
		}
	}
	return out
}

func logs(g Gain) [3]float64 {
	return [3]float64{math.Log1p(float64(g.Estimate)), math.Log1p(float64(g.Low)), math.Log1p(float64(g.High))}
}

// Intervals computed by hand: the unit is the launch, whatever it repeats.
func TestWithinByHand(t *testing.T) {
	for name, k := range map[string]struct {
		launches [][]float64
		mean     float64
		half     float64
		low      float64 // where it is not mean − half
		method   string
		verdict  Verdict
	}{
		// launch means 0.20, 0.22, 0.27: mean 0.23, s = √((0.03² + 0.01² + 0.04²)/2) = 0.036056
		"three": {[][]float64{{0.19, 0.21}, {0.20, 0.24}, {0.27, 0.27}}, 0.23,
			quantiles[2] * 0.0360555 / math.Sqrt(3), 0, LaunchT, NoVerdict},
		// s = √(4·0.01²/3) = 0.011547 of four blocks
		"one": {[][]float64{{0.19, 0.21, 0.19, 0.21}}, 0.2,
			math.Hypot(quantiles[3]*0.0115470/2, 1.96*0.006), 0, OneLaunch, NoVerdict},
		"one block": {[][]float64{{0.2}}, 0.2, math.NaN(), 0, OneLaunch, NoVerdict},
		// Six of 0.19 and one of 0, s = 0.0718133: by t alone the low end is 0.096441, above ln 1.1; the middle is below.
		"two kinds": {append(slices.Repeat([][]float64{{0.18, 0.20}}, 6), []float64{-0.01, 0.01}), 0.1628571,
			2.44691 * 0.0718133 / math.Sqrt(7), 0.095, LaunchT, Inconclusive},
	} {
		r := Judge(within(blocksOf(k.launches...)))
		want := [3]float64{k.mean, cmp.Or(k.low, k.mean-k.half), k.mean + k.half}
		for i, x := range logs(r.Gain) {
			if math.Abs(x-want[i]) > 1e-5 || math.IsNaN(x) != math.IsNaN(want[i]) {
				t.Errorf("%s: %v, want %v", name, logs(r.Gain), want)
			}
		}
		if r.Gain.Method != k.method || r.Gain.N != len(k.launches) || r.Verdict != k.verdict {
			t.Errorf("%s: %+v, %s, want %s", name, r.Gain, r.Verdict, k.verdict)
		}
	}
}
