package stats

import "testing"

func TestMedian(t *testing.T) {
	odd := []float64{5, 1, 3}
	if Median(odd) != 3 || Median([]float64{4, 1}) != 2.5 || odd[0] != 5 {
		t.Errorf("have %v and %v, of %v", Median(odd), Median([]float64{4, 1}), odd)
	}
}
