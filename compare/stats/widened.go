package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// medianFrom is how many values are summed up by their median, so that a single one that
// falls out does not decide.
const medianFrom = 6

// Center is the mean of the values, from six on their median. NaN for none.
func Center(values []float64) float64 {
	if len(values) < medianFrom {
		return stat.Mean(values, nil)
	}
	return Median(values)
}

// Widened is the Center of differences d that share an error which they do not show, as
// segments of one launch share what is peculiar to it. That error has the standard deviation
// sd, taken as known:
//
//	Center ± √((t₍(1+confidence)/2, n−1₎ · s/√n)² + (z₍(1+confidence)/2₎ · sd)²)
//
// The bounds are NaN where PairedT has none.
func Widened(d []float64, sd, confidence float64) Interval {
	t := PairedT(d, confidence)
	half := math.Hypot(t.High-t.Estimate, distuv.UnitNormal.Quantile((1+confidence)/2)*sd)
	t.Estimate = Center(d)
	t.Low, t.High = t.Estimate-half, t.Estimate+half
	return t
}
