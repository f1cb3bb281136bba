package stats

import (
	"math"
	"slices"
)

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
