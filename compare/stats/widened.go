package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Widened is the mean of differences d that share an error which they do not show, as
// segments of one launch share what is peculiar to it. That error has the standard deviation
// sd, taken as known:
//
//	mean ± √((t₍(1+confidence)/2, n−1₎ · s/√n)² + (z₍(1+confidence)/2₎ · sd)²)
//
// They count as one. The bounds are NaN where PairedT has none.
func Widened(d []float64, sd, confidence float64) Interval {
	t := PairedT(d, confidence)
	half := math.Hypot(t.High-t.Estimate, distuv.UnitNormal.Quantile((1+confidence)/2)*sd)
	t.Low, t.High, t.N = t.Estimate-half, t.Estimate+half, 1
	return t
}
