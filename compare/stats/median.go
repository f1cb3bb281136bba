package stats

import "slices"

// Median is the middle of values, or the mean of the two middle ones. It panics for no
// values and leaves them as they are.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
