package stats

import (
	"math"
	"testing"
)

// By hand: medians 4.5 and 14.5 of eight values; c = ⌊4.5 − 2.828 + 0.5⌋ = 2, between the
// second and seventh value lie 5, P(B < 2) = 9/256, z = 1.8099, so each error is 1.3813;
// t₇ = 2.3646.
func TestMedianDifference(t *testing.T) {
	b := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	a := []float64{18, 11, 17, 12, 16, 13, 15, 14}
	r := MedianDifference(a, b, 0.95)
	half := 2.3646 * math.Sqrt2 * 1.3813
	if r.Estimate != 10 || math.Abs(r.Low-(10-half)) > 1e-3 || math.Abs(r.High-(10+half)) > 1e-3 || r.N != 8 {
		t.Errorf("%+v, want 10 ± %.4f", r, half)
	}
	a[0] = 1e6 // the largest one falls out
	if far := MedianDifference(a, b, 0.95); far != r {
		t.Errorf("with a value far off %+v, want %+v", far, r)
	}
	if few := MedianDifference(a[:4], b[:4], 0.95); few.Defined() {
		t.Errorf("of four values: %+v", few)
	}
}

func TestOutlying(t *testing.T) {
	// The rest of the last: mean 0, s = 1; t₁₋₀.₀₂/₁₀ of 3 degrees is 8.05, √(1 + 1/4) = 1.118: 9.00.
	for last, want := range map[float64]bool{9.3: true, 8.7: false, -9.3: true} {
		values := []float64{-1.2247449, 0, 0, 1.2247449, last}
		if far := Outlying(values, 0.02); far[4] != want || far[0] || far[1] || far[3] {
			t.Errorf("%v: %v", values, far)
		}
	}
	if far := Outlying([]float64{1, 100}, 0.02); far[0] || far[1] {
		t.Error("of two values none is far from all others")
	}
}

func TestCenterAndRatio(t *testing.T) {
	if Center([]float64{1, 2, 3, 4, 10}) != 4 || Center([]float64{1, 2, 3, 4, 5, 100}) != 3.5 || !math.IsNaN(Center(nil)) {
		t.Error("the mean of five, the median of six, none of none")
	}
	// Of part = whole/2 + e with Σe·whole = 0: a = 1, b = 2, by hand with n = 3.
	r := Ratio([]float64{0.9, 1.2, 0.9}, []float64{1.9, 2, 2.1}, 0.95)
	// var(a) = 0.03/3, cov = 0, var(b) = 0.01/3, t₂² = 18.5128
	ta, tb := 18.5128*0.01, 18.5128*0.01/3
	root := math.Sqrt(4 - (4-tb)*(1-ta))
	for i, x := range []float64{r.Estimate, r.Low, r.High} {
		if want := []float64{0.5, (2 - root) / (4 - tb), (2 + root) / (4 - tb)}[i]; math.Abs(x-want) > 1e-4 {
			t.Errorf("%v, want %v", x, want)
		}
	}
	if Ratio([]float64{1, 2, 3}, []float64{1, -1, 0.5}, 0.95).Defined() {
		t.Error("a share of a whole that may be zero")
	}
}
