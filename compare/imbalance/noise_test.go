package imbalance

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Values of tables of order statistics.
func TestLargestNormal(t *testing.T) {
	for n, want := range map[float64]float64{1: 0, 2: 0.5641895835, 4: 1.0293753730, 16: 1.7659913931,
		64: 2.3437333060} {
		if have := largestNormal(n); math.Abs(have-want) > 1e-6 {
			t.Errorf("of %v: have %v, want %v", n, have, want)
		}
	}
}

// drawn is a layer of equal ranks but for their factors, whose times spread by sd.
func drawn(steps int, sd float64, factors []float64) *Layer {
	rng, l := rand.New(rand.NewPCG(1, 2)), &Layer{}
	for range steps {
		var step []float64
		for _, f := range factors {
			step = append(step, 1e5*f*(1+sd*rng.NormFloat64()))
		}
		l.Experts = append(l.Experts, step)
	}
	for i := range factors {
		l.Ranks = append(l.Ranks, i)
	}
	return l
}

func equal(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// Of 64 equal ranks whose times spread by 5 % the largest is 12 % above the mean: no
// imbalance. A rank that is 25 % slower is one all the same.
func TestNoiseIsNoImbalance(t *testing.T) {
	for _, c := range []struct {
		sd, slow, floor float64
		flagged         bool
	}{{0.05, 1, 1.117, false}, {0.05, 1.25, 1.117, true}, {0.002, 1.25, 1.005, true}} {
		factors := equal(64)
		factors[7] = c.slow
		r, _ := drawn(50, c.sd, factors).Row(0.1)
		if math.Abs(float64(r.Floor)-c.floor) > 0.006 || r.Flagged != c.flagged {
			t.Errorf("%+v: floor %v, max/mean %v, flagged %v", c, r.Floor, r.MaxOverMean, r.Flagged)
		}
	}
	r, _ := drawn(50, 0.05, equal(64)).Row(0.1)
	if math.Abs(float64(r.MaxOverMean-r.Floor)) > 0.01 {
		t.Errorf("equal ranks show %v, their floor is %v", r.MaxOverMean, r.Floor)
	}
	if r, _ := drawn(2, 0.05, equal(64)).Row(0.1); r.Floor.Defined() {
		t.Errorf("two steps tell no spread: have %v", r.Floor)
	}
}

// Ranks that are hot in turns are uneven, and no noise.
func TestTurnsAreNoNoise(t *testing.T) {
	for ranks := 2; ranks <= 16; ranks *= 2 {
		l := drawn(20, 0.01, equal(ranks))
		for s := range l.Experts {
			l.Experts[s][s*7%ranks] *= 1.5
		}
		if r, _ := l.Row(0.1); !(r.Floor < 1.03) || !r.Flagged {
			t.Errorf("%d ranks: floor %v of %v", ranks, r.Floor, r.MaxOverMean)
		}
	}
}

// Three steps are the fewest that show how much equal ranks vary.
func TestNoiseOfFewSteps(t *testing.T) {
	steps := [][]float64{{10, 11}, {11, 10}, {10, 10.5}}
	if f := noiseFloor(steps); !(f > 1) {
		t.Errorf("three steps: %v", f)
	}
	if f := noiseFloor(steps[:2]); f.Defined() {
		t.Errorf("two steps: %v", f)
	}
}

// Shares of two ranks of 1 ± 0, 0.01 and 0.03 differ by 0.01, 0.02 and 0.03, each twice: the lower
// quartile is 0.01. A difference of two shares of two ranks has the variance 2σ²·(1 − ½) = σ², and the
// larger of two normals is 1/√π above their mean: 1 + 0.01/0.318639/√π.
func TestNoiseFloorByHand(t *testing.T) {
	near(t, "floor", noiseFloor([][]float64{{100, 100}, {101, 99}, {103, 97}}), 1+0.01/0.31863936396/math.Sqrt(math.Pi))
}
