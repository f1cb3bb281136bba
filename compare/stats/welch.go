package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Welch estimates mean(a) − mean(b) of two independent samples whose spreads may
// differ, with the interval
//
//	difference ± t₍(1+confidence)/2, ν₎ · se,   se² = s²ₐ/nₐ + s²ᵦ/nᵦ,
//	ν = se⁴ / ((s²ₐ/nₐ)²/(nₐ−1) + (s²ᵦ/nᵦ)²/(nᵦ−1))
//
// It assumes independent values that are roughly normal. The interval is NaN for fewer
// than 2 values on a side and for one that is not finite; without any spread it has no
// width. N counts both samples.
//
// Welch, Biometrika 34(1–2), 1947.
func Welch(a, b []float64, confidence float64) Interval {
	estimate, n := stat.Mean(a, nil)-stat.Mean(b, nil), len(a)+len(b)
	if len(a) < 2 || len(b) < 2 || !finite(a) || !finite(b) {
		return undefinedInterval(estimate, n)
	}
	va, vb := stat.Variance(a, nil)/float64(len(a)), stat.Variance(b, nil)/float64(len(b))
	half := 0.0
	if se2 := va + vb; se2 > 0 {
		df := se2 * se2 / (va*va/float64(len(a)-1) + vb*vb/float64(len(b)-1))
		half = distuv.StudentsT{Sigma: 1, Nu: df}.Quantile((1+confidence)/2) * math.Sqrt(se2)
	}
	return Interval{Estimate: estimate, Low: estimate - half, High: estimate + half, Confidence: confidence, N: n}
}

// Interval is an estimate with a two-sided confidence interval.
type Interval struct {
	Estimate float64
	// Low and High bound the interval; both are NaN where it is undefined.
	Low, High float64
	// Confidence is the coverage that the method really has, in (0, 1): for an
	// exact discrete method it is at least what was asked for. NaN where the
	// interval is undefined.
	Confidence float64
	N          int // differences used
}

// Defined reports whether the interval has bounds.
func (i Interval) Defined() bool { return !math.IsNaN(i.Low) && !math.IsNaN(i.High) }

// undefinedInterval has an estimate but no bounds.
func undefinedInterval(estimate float64, n int) Interval {
	return Interval{Estimate: estimate, Low: math.NaN(), High: math.NaN(), Confidence: math.NaN(), N: n}
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
// those of one launch share what is peculiar to it. That error has the standard deviation
// sd, taken as known:
//
//	Center ± √((t₍(1+confidence)/2, n−1₎ · s/√n)² + (z₍(1+confidence)/2₎ · sd)²)
//
// The bounds are NaN as those of PairedT; SE and P are undefined.
func Widened(d []float64, sd, confidence float64) TTest {
	t := PairedT(d, confidence)
	half := math.Hypot(t.High-t.Estimate, distuv.UnitNormal.Quantile((1+confidence)/2)*sd)
	t.Estimate, t.DF, t.SE = Center(d), 0, math.NaN()
	t.Low, t.High = t.Estimate-half, t.Estimate+half
	return t
}
