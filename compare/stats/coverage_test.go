package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// coverageTrials gives a share near 0.95 a standard error of 0.003; the
// allowance below is three of them.
const coverageTrials = 5000

// The intervals that lead a report must cover as often as they say, at the
// numbers of pairs people really run and when the noise has heavy tails.
func TestCoverage(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates thousands of campaigns")
	}
	noises := map[string]func(*rand.Rand) float64{
		"normal": func(r *rand.Rand) float64 { return r.NormFloat64() },
		"t3": func(r *rand.Rand) float64 { // normal / √(χ²₃/3)
			a, b, c := r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
			return r.NormFloat64() / math.Sqrt((a*a+b*b+c*c)/3)
		},
	}
	for name, noise := range noises {
		rng := rand.New(rand.NewPCG(6, 1))
		for n := 6; n <= 20; n++ {
			exact, student := 0, 0
			var stated float64
			d := make([]float64, n)
			for range coverageTrials {
				for i := range d {
					d[i] = 0.1 + 0.02*noise(rng)
				}
				hl := HodgesLehmann(d, 0.95)
				stated = hl.Confidence
				if hl.Contains(0.1) {
					exact++
				}
				if PairedT(d, 0, 0.95).Contains(0.1) {
					student++
				}
			}
			if share := float64(exact) / coverageTrials; share < 0.94 || math.Abs(share-stated) > 0.009 {
				t.Errorf("%s, %d pairs: exact interval covers %.3f, states %.3f", name, n, share, stated)
			}
			if share := float64(student) / coverageTrials; share < 0.94 {
				t.Errorf("%s, %d pairs: t interval covers %.3f", name, n, share)
			}
		}
	}
}

// session simulates the log values of pairs of launches with run noise of
// 0.4 % under a drift of 3 % from first to last launch, no difference between
// the arms, and the arms in the given repeating order.
func session(rng *rand.Rand, pairs int, order string) []float64 {
	d := make([]float64, pairs)
	launches := float64(2*pairs - 1)
	for i := range 2 * pairs {
		value := 0.03*float64(i)/launches + 0.004*rng.NormFloat64()
		if order[i%len(order)] == 'A' {
			value = -value
		}
		d[i/2] += value
	}
	return d
}

func TestFalsePositivesUnderDrift(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates thousands of campaigns")
	}
	const trials = 4000
	share := func(order string, pairs int) float64 {
		rng := rand.New(rand.NewPCG(6, 2))
		hits := 0
		for range trials {
			if hl := HodgesLehmann(session(rng, pairs, order), 0.95); hl.Defined() && !hl.Contains(0) {
				hits++
			}
		}
		return float64(hits) / trials
	}
	for _, pairs := range []int{6, 8, 10, 16, 20} {
		if s := share("ABBA", pairs); s > 0.06 {
			t.Errorf("ABBA, %d pairs: %.3f false positives, want at most 0.06", pairs, s)
		}
	}
	// The test can fail: always the same arm first lets the drift through.
	if s := share("AB", 10); s < 0.08 {
		t.Errorf("ABAB, 10 pairs: only %.3f false positives; the drift is not there", s)
	}
}
