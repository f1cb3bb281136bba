package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

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
	if n < 3 {
		return out
	}
	limit := distuv.StudentsT{Sigma: 1, Nu: n - 2}.Quantile(1-level/(2*n)) * math.Sqrt(1+1/(n-1))
	for i, v := range values {
		mean, sd := meanSD(slices.Delete(slices.Clone(values), i, i+1))
		out[i] = math.Abs(v-mean) > limit*sd
	}
	return out
}
