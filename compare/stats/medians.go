package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// MedianDifference estimates by how much the median of a exceeds that of b, of as many
// values each, with the interval
//
//	difference ± t₍(1+confidence)/2, n−1₎ · √(SEₐ² + SEᵦ²)
//
// A fifth of outliers on one side moves it little, which moves means and ranks of pairs a
// lot. The standard error of a median is that of its order statistics
// c = ⌊(n+1)/2 − √n + ½⌋ and n−c+1, of a distance that 2·z₍1−P(B<c)₎ such errors have, B
// binomial with n and ½. NaN for fewer than 5 values each.
//
// Price and Bonett, Journal of Statistical Computation and Simulation 68(3), 2001.
func MedianDifference(a, b []float64, confidence float64) Interval {
	n := len(a)
	if n < 5 || n != len(b) || !finite(a) || !finite(b) || !(confidence > 0 && confidence < 1) {
		return undefinedInterval(math.NaN(), n)
	}
	r := Interval{Estimate: Median(a) - Median(b), Confidence: confidence, N: n}
	half := studentsT(n-1).Quantile((1+confidence)/2) * math.Hypot(medianError(a), medianError(b))
	r.Low, r.High = r.Estimate-half, r.Estimate+half
	return r
}

func medianError(values []float64) float64 {
	n := len(values)
	c := max(1, int(math.Floor(float64(n+1)/2-math.Sqrt(float64(n))+0.5)))
	below := distuv.Binomial{N: float64(n), P: 0.5}.CDF(float64(c - 1))
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[n-c] - sorted[c-1]) / (2 * distuv.UnitNormal.Quantile(1-below))
}
