package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// PairedT estimates the mean of the differences d by their mean, with the interval
//
//	mean ± t₍(1+confidence)/2, n−1₎ · sd/√n
//
// It assumes independent differences that are roughly normal; with heavy tails
// it is conservative, with skewed ones its coverage falls below the nominal.
// The interval is NaN for fewer than 2 differences and for one that is not finite.
//
// Student, Biometrika 6(1), 1908.
func PairedT(d []float64, confidence float64) Interval { return Crossover(confidence, d) }

// Crossover estimates the mean difference of a design in which each pair ran in one of
// two orders, free of what the order adds: of d = effect ± order the mean over the
// orders' means,
//
//	(mean(first) + mean(second)) / 2 ± t₍(1+confidence)/2, n₁+n₂−2₎ · sd·√(1/n₁ + 1/n₂)/2
//
// with the standard deviation pooled within the orders. The groups are the pairs of each order.
// A linear drift adds the same to every pair of an order, and
// so goes out with it. The assumptions are PairedT's, and equal spread in both
// orders. One group alone gives PairedT.
//
// Jones and Kenward, Design and Analysis of Cross-Over Trials, 3rd ed., §2.3.
func Crossover(confidence float64, groups ...[]float64) Interval {
	n, sum, squares, inverse, k := 0, 0.0, 0.0, 0.0, float64(len(groups))
	for _, d := range groups {
		mean, variance := stat.PopMeanVariance(d, nil)
		n, sum, squares, inverse = n+len(d), sum+mean, squares+variance*float64(len(d)), inverse+1/float64(len(d))
	}
	nan := math.NaN()
	r := Interval{sum / k, nan, nan, nan, n, nan}
	if free := n - len(groups); free >= 1 && !math.IsNaN(sum-sum) {
		r.SD = math.Sqrt(squares / float64(free))
		half := studentsT(free).Quantile((1+confidence)/2) * r.SD * math.Sqrt(inverse) / k
		r.Low, r.High, r.Confidence = r.Estimate-half, r.Estimate+half, confidence
	}
	return r
}

// aboutMiddle is the confidence with which OverGroups holds the middle between two groups: at the middle itself their
// noise alone would decide, and by more the interval would cover more often than it says.
const aboutMiddle = 0.25

// OverGroups is PairedT of differences that may be of two kinds. Student's t is too narrow where nearly all are of one
// kind by chance: of two values that are equally frequent, six of seven agree in one of nine campaigns. So the
// interval also holds the middle between the means of the lower k differences and of the others, wherever a
// sign test at this confidence does not show that either group is the more frequent one:
//
//	2·P(at most min(k, n−k) of n) > 1 − confidence, each with a probability of one half
//
//	six of 2 and one of 0 → 1.71, from 1.00 (by t alone from 1.01) to 2.41
func OverGroups(d []float64, confidence float64) Interval {
	t, sorted, n := PairedT(d, confidence), slices.Sorted(slices.Values(d)), len(d)
	for k := 1; k < n && n > 2; k++ {
		if few := (distuv.Binomial{N: float64(n), P: 0.5}).CDF(float64(min(k, n-k))); 2*few > 1-confidence {
			middle := Crossover(aboutMiddle, sorted[:k], sorted[k:])
			t.Low, t.High = min(t.Low, middle.Low), max(t.High, middle.High)
		}
	}
	return t
}

func studentsT(df int) distuv.StudentsT { return distuv.StudentsT{Sigma: 1, Nu: float64(df)} }
