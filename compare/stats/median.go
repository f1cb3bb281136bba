package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Median is the middle of values, or the mean of the two middle ones. It panics for no
// values and leaves them as they are.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Percentile is the p-th percentile by the nearest rank: the smallest value that at
// least p % of the values do not exceed, ⌈p·n/100⌉ in ascending order (from 1). It is
// always one of the values: the 99th of fewer than 100 is the largest. p is in (0, 100].
// NaN for no values and for one that is NaN. The values stay as they are.
func Percentile(values []float64, p int) float64 {
	n := len(values)
	if n == 0 || slices.ContainsFunc(values, math.IsNaN) {
		return math.NaN()
	}
	return slices.Sorted(slices.Values(values))[(p*n+99)/100-1]
}

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

// Outlying reports which of the values are far from all others, by the distance of each
// from the mean of the rest in standard deviations of the rest:
//
//	|xᵢ − mean₍ᵢ₎| > t₍1−level/2n, n−2₎ · s₍ᵢ₎ · √(1 + 1/(n−1))
//
// Of n independent normal values one or more are called outlying with a probability of at
// most the level. One that is hides another. None is of fewer than three values.
//
// Cook and Weisberg, Residuals and Influence in Regression, §2.2.2.
func Outlying(values []float64, level float64) []bool {
	out, n := make([]bool, len(values)), float64(len(values))
	if n < 3 || !finite(values) {
		return out
	}
	limit := distuv.StudentsT{Sigma: 1, Nu: n - 2}.Quantile(1-level/(2*n)) * math.Sqrt(1+1/(n-1))
	for i, v := range values {
		rest := append(append([]float64{}, values[:i]...), values[i+1:]...)
		mean, sd := meanSD(rest)
		out[i] = math.Abs(v-mean) > limit*sd
	}
	return out
}
