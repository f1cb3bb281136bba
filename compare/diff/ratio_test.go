package diff

import (
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// Steps of one size keep their differences; differences in proportion to their steps have
// no spread left. By hand: mean 4, steps 1, 2, 3 of mean 2, so 2 − 4·(−½), 4 − 0, 9 − 4·½.
func TestOfMeanStep(t *testing.T) {
	for _, c := range []struct{ differences, sizes, want []float64 }{
		{[]float64{1, 5, 3}, []float64{7, 7, 7}, []float64{1, 5, 3}},
		{[]float64{2, 4, 6}, []float64{10, 20, 30}, []float64{4, 4, 4}},
		{[]float64{2, 4, 6}, []float64{30, 20, 10}, []float64{0, 4, 8}},
		{[]float64{2, 1, 9}, []float64{1, 2, 3}, []float64{4, 1, 7}},
	} {
		mean := stat.Mean(c.differences, nil)
		got := ofMeanStep(slices.Clone(c.differences), c.sizes)
		if !slices.Equal(got, c.want) || stat.Mean(got, nil) != mean {
			t.Errorf("%v in steps of %v: %v, want %v", c.differences, c.sizes, got, c.want)
		}
	}
}
