package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Ratio is the mean of the differences part over the mean of whole, their partners, with
// Fieller's interval: all θ at which part − θ·whole is not different from zero. It is undefined where the
// interval of whole contains zero, because the set is then not bounded.
//
// Fieller, Journal of the Royal Statistical Society B 16(2), 1954.
func Ratio(part, whole []float64, confidence float64) Interval {
	n := len(part)
	if n < 2 || n != len(whole) || !finite(part) || !finite(whole) {
		return undefinedInterval(math.NaN(), n)
	}
	covariance := func(a, b []float64) float64 { return stat.Covariance(a, b, nil) / float64(n) }
	a, b := stat.Mean(part, nil), stat.Mean(whole, nil)
	t := studentsT(n - 1).Quantile((1 + confidence) / 2)
	r := undefinedInterval(a/b, n)
	square, half, rest := b*b-t*t*covariance(whole, whole), a*b-t*t*covariance(part, whole),
		a*a-t*t*covariance(part, part)
	if square > 0 {
		root := math.Sqrt(max(0, half*half-square*rest)) // below 0 by rounding only
		r.Low, r.High, r.Confidence = (half-root)/square, (half+root)/square, confidence
	}
	return r
}
