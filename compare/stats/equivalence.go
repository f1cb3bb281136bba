package stats

import "math"

// EquivalenceTest is the result of TOST. Each P is that of the hypothesis that
// the centre lies outside (low, high): the larger of the two one-sided p-values.
// P < α shows the centre inside, at level α.
type EquivalenceTest struct {
	TP    float64 // by Student's t
	RankP float64 // by the exact signed-rank test
}

// TOST tests by two one-sided tests whether the centre of the differences d
// lies strictly between low and high: whether an effect, if there is one, is too
// small to matter. Rejecting at α is the same as finding the 1−2α interval
// inside the margins. The assumptions are those of PairedT and SignedRank. A p
// is NaN where its test is undefined or low < high does not hold.
//
// Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15(6), 1987.
func TOST(d []float64, low, high float64) EquivalenceTest {
	if !(low < high) {
		return EquivalenceTest{TP: math.NaN(), RankP: math.NaN()}
	}
	const anyConfidence = 0.95 // only the p-values are used
	above := SignedRank(minus(d, low))
	below := SignedRank(minus(d, high))
	return EquivalenceTest{
		TP:    math.Max(PairedT(d, low, anyConfidence).PGreater, PairedT(d, high, anyConfidence).PLess),
		RankP: math.Max(above.PGreater, below.PLess),
	}
}

func minus(d []float64, m float64) []float64 {
	out := make([]float64, len(d))
	for i, x := range d {
		out[i] = x - m
	}
	return out
}
