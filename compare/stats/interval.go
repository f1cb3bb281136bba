package stats

import "math"

// Interval is an estimate with a two-sided confidence interval.
type Interval struct {
	Estimate float64
	// Low and High bound the interval; both are NaN where it is undefined.
	Low, High float64
	// Confidence is the coverage that was asked for, in (0, 1); NaN where the interval is undefined.
	Confidence float64
	N          int // differences used
	// SD is the sample standard deviation of one difference, about the mean of its group; NaN of a ratio.
	SD float64
}

// undefinedInterval has an estimate but no bounds.
func undefinedInterval(estimate float64, n int) Interval {
	nan := math.NaN()
	return Interval{estimate, nan, nan, nan, n, nan}
}

// finite reports whether every value is a finite number.
func finite(values []float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}
