package stats

import (
	"math"
	"testing"
)

// Parts 1 and 3 of wholes 5 and 7: means 2 and 6, variances of the means 1 each with covariance 1, and
// t₀.₇₅ of one degree of freedom 1. So θ solves 4 − 1 − 2θ(12 − 1) + θ²(36 − 1) = 0: 3/7 and 1/5.
func TestRatioByHand(t *testing.T) {
	r := Ratio([]float64{1, 3}, []float64{5, 7}, 0.5)
	checkNear(t, "estimate", r.Estimate, 1.0/3, 1e-15)
	checkNear(t, "low", r.Low, 1.0/5, 1e-12)
	checkNear(t, "high", r.High, 3.0/7, 1e-12)
	same := Ratio([]float64{5, 7}, []float64{5, 7}, 0.5)
	checkNear(t, "of itself", same.Low, 1, 1e-7)
	checkNear(t, "of itself", same.High, 1, 1e-7)
	for _, k := range [][2][]float64{{{1}, {2}}, {{1, 2}, {1}}, {{1, math.NaN()}, {1, 2}}, {{1, 2}, {-1, 1}}} {
		if r := Ratio(k[0], k[1], 0.95); r.Defined() {
			t.Errorf("%v: %+v, want no bounds", k, r)
		}
	}
}

// Leaning moves one bound.
func TestLeaning(t *testing.T) {
	plain := PairedT(sleep, 0.95)
	for _, bias := range []float64{0.5, -0.5} {
		leant := plain.Leaning(bias)
		checkNear(t, "low", leant.Low, plain.Low-max(0, bias), 0)
		checkNear(t, "high", leant.High, plain.High+max(0, -bias), 0)
	}
}

// contains reports whether x lies in the closed interval; false if undefined.
func contains(i Interval, x float64) bool { return i.Low <= x && x <= i.High }
