package stats

// Interval is an estimate with a two-sided confidence interval.
type Interval struct {
	Estimate float64
	// Low and High bound the interval; both are NaN where it is undefined.
	Low, High float64
	// Confidence is the coverage that was asked for, in (0, 1); NaN where the interval is undefined.
	Confidence float64
	N          int // differences used
	// SD is the sample standard deviation of one difference, about the mean of its group; NaN where the interval is.
	SD float64
}
