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
