package stats

import (
	"math"
)

// Trend is a straight line fitted through repeated measurements.
type Trend struct {
	Interval         // slope per unit of x, with its t interval
	P        float64 // two-sided, of the hypothesis of no slope
	DF       int
}

// CommonSlope estimates the linear drift that several series share: least
// squares of y on x with one slope and one mean per group, so that the
// difference between the groups is not taken for drift. With the groups' own
// means x̄, ȳ,
//
//	slope = Σ(x−x̄)(y−ȳ) / Σ(x−x̄)²,   DF = n − groups − 1
//
// It assumes independent, normal residuals of equal spread; a random walk makes
// its interval too short. x, y and group have equal lengths, group holds any
// labels. Slope, interval and P are NaN for fewer than 1 degree of freedom,
// constant x in every group, or a value that is not finite; a perfect fit has
// the zero-width interval and P = 0.
func CommonSlope(x, y []float64, group []int, confidence float64) Trend {
	undefined := Trend{Interval: undefinedInterval(math.NaN(), len(x)), P: math.NaN()}
	if len(x) != len(y) || len(x) != len(group) || !finite(x) || !finite(y) {
		return undefined
	}
	cx, groups := centered(x, group)
	cy, _ := centered(y, group)
	var xx, xy, yy float64
	for i := range cx {
		xx += cx[i] * cx[i]
		xy += cx[i] * cy[i]
		yy += cy[i] * cy[i]
	}
	df := len(x) - groups - 1
	if df < 1 || xx == 0 || !(confidence > 0 && confidence < 1) {
		return undefined
	}
	slope := xy / xx
	se := math.Sqrt(max(0, yy-slope*xy) / float64(df) / xx)
	t := studentsT(df)
	half := t.Quantile((1+confidence)/2) * se
	r := Trend{Interval: Interval{Estimate: slope, Low: slope - half, High: slope + half, Confidence: confidence,
		N: len(x)}, DF: df}
	switch {
	case se > 0:
		r.P = 2 * t.Survival(math.Abs(slope)/se)
	case slope == 0:
		r.P = 1
	}
	return r
}

// centered subtracts from each value the mean of its group, and counts groups.
func centered(values []float64, group []int) (out []float64, groups int) {
	sum, count := map[int]float64{}, map[int]float64{}
	for i, v := range values {
		sum[group[i]] += v
		count[group[i]]++
	}
	out = make([]float64, len(values))
	for i, v := range values {
		out[i] = v - sum[group[i]]/count[group[i]]
	}
	return out, len(count)
}

// OrderEffect estimates what running second is worth, from the differences of the pairs
// of each order as in Crossover:
//
//	effect = (mean(first) − mean(second)) / 2
//
// with the same standard error as the crossover's estimate. It needs both orders.
func OrderEffect(first, second []float64, confidence float64) TTest {
	r := Crossover(first, second, confidence)
	if len(first) == 0 || len(second) == 0 {
		return TTest{Interval: undefinedInterval(math.NaN(), r.N), SE: math.NaN(), SD: math.NaN()}
	}
	m1, _ := meanSD(first)
	m2, _ := meanSD(second)
	shift := (m1-m2)/2 - r.Estimate
	r.Estimate, r.Low, r.High = r.Estimate+shift, r.Low+shift, r.High+shift
	return r
}
