package stats

import (
	"math"
	"testing"
)

func TestCommonSlopeByHand(t *testing.T) {
	// Two series with slope 2, one 10 above the other: exact.
	x := []float64{0, 3, 1, 2}
	y := []float64{0, 16, 2, 14}
	group := []int{0, 1, 0, 1}
	r := CommonSlope(x, y, group, 0.95)
	checkNear(t, "slope", r.Estimate, 2, 1e-15)
	checkNear(t, "perfect fit", r.P, 0, 0)
	checkNear(t, "width", r.High-r.Low, 0, 1e-12)
	// One series 0, 1, 5 at 0, 1, 2: slope 5/2, residuals ½, −1, ½ → variance
	// 1.5 with 1 df, Sxx = 2, se = √0.75, t = 2.8868, P = 2·(½ − atan(t)/π).
	r = CommonSlope([]float64{0, 1, 2}, []float64{0, 1, 5}, []int{0, 0, 0}, 0.95)
	checkNear(t, "slope", r.Estimate, 2.5, 1e-15)
	checkNear(t, "p", r.P, 1-2*math.Atan(2.5/math.Sqrt(0.75))/math.Pi, 1e-12)
	checkNear(t, "low", r.Low, 2.5-12.70620*math.Sqrt(0.75), 1e-4)
	if r.DF != 1 {
		t.Errorf("have %d degrees of freedom, want 1", r.DF)
	}
}

func TestCommonSlopeUndefined(t *testing.T) {
	for _, r := range []Trend{
		CommonSlope(nil, nil, nil, 0.95),
		CommonSlope([]float64{1, 2}, []float64{1, 2}, []int{0, 0}, 0.95),
		CommonSlope([]float64{1, 1, 1, 1}, []float64{1, 2, 3, 4}, []int{0, 0, 0, 0}, 0.95),
		CommonSlope([]float64{1, 2, 3}, []float64{1, 2}, []int{0, 0, 0}, 0.95),
		CommonSlope([]float64{1, 2, 3, 4}, []float64{1, 2, math.NaN(), 4}, []int{0, 0, 0, 0}, 0.95),
	} {
		checkNaN(t, "undefined", r.P, r.Estimate, r.Low, r.High)
	}
	for _, confidence := range []float64{0, 1, math.NaN()} {
		slope := CommonSlope([]float64{1, 2, 3}, []float64{1, 2, 4}, []int{0, 0, 0}, confidence)
		order := OrderEffect([]float64{3, 5}, []float64{1, 2}, confidence)
		checkNaN(t, "impossible confidence", slope.Low, slope.High, order.Low, order.High)
	}
	flat := CommonSlope([]float64{1, 2, 3, 4}, []float64{5, 5, 5, 5}, []int{0, 0, 0, 0}, 0.95)
	checkNear(t, "constant values, slope", flat.Estimate, 0, 0)
	checkNear(t, "constant values, p", flat.P, 1, 0)
}

func TestOrderEffectByHand(t *testing.T) {
	// 3, 5 against 1, 1, 4: means 4 and 2, effect 1. Squares 2 + 6 with 3 df:
	// pooled variance 8/3, se = √(8/3·(1/2+1/3))/2 = 0.745356, t = 1.341641.
	r := OrderEffect([]float64{3, 5}, []float64{1, 1, 4}, 0.95)
	checkNear(t, "effect", r.Estimate, 1, 1e-15)
	checkNear(t, "p", r.P(0), 2*studentsT(3).Survival(1.3416407865), 1e-9)
	checkNear(t, "low", r.Low, 1-3.182446*0.745356, 1e-5)
	// A drift of δ per launch adds δ to pairs with the base first, takes it from
	// the others, and so is the effect itself.
	drifted := OrderEffect([]float64{0.2 + 0.01, 0.3 + 0.01}, []float64{0.2 - 0.01, 0.3 - 0.01}, 0.95)
	checkNear(t, "drift", drifted.Estimate, 0.01, 1e-15)
	for _, r := range []TTest{OrderEffect(nil, []float64{1, 2}, 0.95), OrderEffect([]float64{1, 2}, nil, 0.95),
		OrderEffect([]float64{math.NaN(), 2}, []float64{1, 2}, 0.95), OrderEffect([]float64{1}, []float64{2}, 0.95)} {
		checkNaN(t, "undefined", r.P(0), r.Low, r.High)
	}
}
