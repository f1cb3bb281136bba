package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestHodgesLehmannPublished(t *testing.T) {
	// Hollander, Wolfe and Chicken, examples 3.3 and 3.4 (with the sign turned):
	// estimate 0.46, interval 0.010 to 0.786 at 96.1 %.
	hl := HodgesLehmann(depression(), 0.95)
	checkNear(t, "estimate", hl.Estimate, 0.46, 1e-9)
	checkNear(t, "low", hl.Low, 0.010, 1e-9)
	checkNear(t, "high", hl.High, 0.786, 1e-9)
	checkNear(t, "confidence", hl.Confidence, 1-2*10.0/512, 1e-12) // P(W ≤ 5) = 10/512
}

func TestHodgesLehmannByHand(t *testing.T) {
	// 1, 2, 4: Walsh averages 1, 1.5, 2, 2.5, 3, 4; median (2+2.5)/2.
	hl := HodgesLehmann([]float64{4, 1, 2}, 0.75)
	checkNear(t, "estimate", hl.Estimate, 2.25, 0)
	// P(W ≤ 0) = 1/8 = (1−0.75)/2: the whole range, at exactly 75 %.
	checkNear(t, "low", hl.Low, 1, 0)
	checkNear(t, "high", hl.High, 4, 0)
	checkNear(t, "confidence", hl.Confidence, 0.75, 1e-15)
}

func TestHodgesLehmannNeedsSixPairs(t *testing.T) {
	d := []float64{5, 1, 4, 2, 3}
	five := HodgesLehmann(d, 0.95)
	checkNaN(t, "five pairs", five.Low, five.High, five.Confidence)
	checkNear(t, "five pairs, estimate", five.Estimate, 3, 0)
	six := HodgesLehmann(append(d, 6), 0.95)
	checkNear(t, "six pairs, low", six.Low, 1, 0)
	checkNear(t, "six pairs, high", six.High, 6, 0)
	checkNear(t, "six pairs, confidence", six.Confidence, 31.0/32, 1e-15)
	for confidence, want := range map[float64]int{0.5: 2, 0.9: 5, 0.95: 6, 0.96875: 6, 0.97: 7, 0.99: 8, 0: 0, 1: 0} {
		if n := MinPairs(confidence); n != want {
			t.Errorf("MinPairs(%g): have %d, want %d", confidence, n, want)
		}
		if want > 0 && !HodgesLehmann(make([]float64, want), confidence).Defined() {
			t.Errorf("%d pairs at %g: want an interval", want, confidence)
		}
	}
	for _, confidence := range []float64{0, 1, -1, 2, math.NaN()} {
		hl := HodgesLehmann(append(d, 6), confidence)
		checkNaN(t, "impossible confidence", hl.Low, hl.High, hl.Confidence)
		checkNear(t, "impossible confidence, estimate", hl.Estimate, 3.5, 0)
	}
	for _, bad := range [][]float64{nil, {math.NaN(), 1, 2, 3, 4, 5}, {math.Inf(-1), 1, 2, 3, 4, 5}} {
		hl := HodgesLehmann(bad, 0.95)
		checkNaN(t, "bad input", hl.Estimate, hl.Low, hl.High)
	}
}

// The averages written out and sorted, as the definition says.
func TestHodgesLehmannAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for range 300 {
		n := 1 + rng.IntN(30)
		d := make([]float64, n)
		for i := range d {
			if d[i] = rng.NormFloat64(); n%2 == 0 {
				d[i] = math.Round(2 * d[i]) // ties, zeros, negative zeros
			}
		}
		var averages []float64
		for i := range d {
			for j := i; j < n; j++ {
				averages = append(averages, d[i]/2+d[j]/2)
			}
		}
		slices.Sort(averages)
		m := len(averages)
		hl := HodgesLehmann(d, 0.95)
		checkNear(t, "estimate", hl.Estimate, (averages[(m-1)/2]+averages[m/2])/2, 0)
		if c, _, ok := rankCritical(n, 0.025); ok {
			checkNear(t, "low", hl.Low, averages[c], 0)
			checkNear(t, "high", hl.High, averages[m-1-c], 0)
		} else {
			checkNaN(t, "bounds", hl.Low, hl.High)
		}
		if t.Failed() {
			t.Fatalf("differences %v", d)
		}
	}
}

// The interval holds exactly the centers that the test does not reject.
func TestHodgesLehmannInvertsTheTest(t *testing.T) {
	d := depression()
	hl := HodgesLehmann(d, 0.95)
	alpha := 1 - hl.Confidence
	for _, shift := range []float64{-1e-9, 1e-9} {
		inside, outside := SignedRank(minus(d, hl.Low+math.Abs(shift))), SignedRank(minus(d, hl.Low-math.Abs(shift)))
		if !(inside > alpha && outside <= alpha+1e-12) {
			t.Errorf("about the lower bound: p %g inside and %g outside, α = %g", inside, outside, alpha)
		}
	}
}

// An even larger sample must not need quadratic memory or change its meaning.
func TestHodgesLehmannLarge(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	d := make([]float64, 5000)
	for i := range d {
		d[i] = 0.2 + 0.1*rng.NormFloat64()
	}
	hl := HodgesLehmann(d, 0.95)
	// Half-width ≈ 1.96·0.1/√(5000·3/π) = 0.00284.
	checkNear(t, "estimate", hl.Estimate, 0.2, 0.005)
	checkNear(t, "half-width", (hl.High-hl.Low)/2, 0.00284, 0.0002)
	checkNear(t, "confidence", hl.Confidence, 0.95, 1e-4)
}

func BenchmarkHodgesLehmann5000(b *testing.B) {
	rng := rand.New(rand.NewPCG(2, 3))
	d := make([]float64, 5000)
	for i := range d {
		d[i] = rng.NormFloat64()
	}
	b.ReportAllocs()
	for b.Loop() {
		HodgesLehmann(d, 0.95)
	}
}

func minus(d []float64, m float64) []float64 {
	out := make([]float64, len(d))
	for i, x := range d {
		out[i] = x - m
	}
	return out
}
