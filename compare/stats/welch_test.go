package stats

import (
	"math"
	"testing"
)

// Extra hours of sleep under two drugs, 10 patients each (Student, 1908), taken as two
// independent samples: what t.test(extra ~ group) of R 4 prints for the data set sleep.
func TestWelch(t *testing.T) {
	a := []float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0}
	b := []float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	got := Welch(a, b, 0.95)
	for _, c := range []struct {
		name      string
		got, want float64
	}{{"estimate", got.Estimate, -1.58}, {"low", got.Low, -3.3654832}, {"high", got.High, 0.2054832}} {
		if math.Abs(c.got-c.want) > 1e-6 {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
	if got.N != 20 {
		t.Errorf("N: got %d, want 20", got.N)
	}
	if back := Welch(b, a, 0.95); back.Low != -got.High || back.High != -got.Low {
		t.Errorf("swapped samples: got %+v, want the mirror image of %+v", back, got)
	}
}

func TestWelchUndefined(t *testing.T) {
	if got := Welch([]float64{3}, []float64{1, 2}, 0.95); got.Defined() || got.Estimate != 1.5 {
		t.Errorf("one value on a side: got %+v, want 1.5 without bounds", got)
	}
	if got := Welch([]float64{3, math.NaN()}, []float64{1, 2}, 0.95); got.Defined() {
		t.Errorf("NaN: got %+v, want no bounds", got)
	}
	if got := Welch([]float64{3, 3}, []float64{1, 1}, 0.95); got.Low != 2 || got.High != 2 {
		t.Errorf("no spread: got %+v, want 2 to 2", got)
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i) // 100 … 1
	}
	for _, c := range []struct {
		values []float64
		p      int
		want   float64
	}{
		{hundred, 99, 99}, {hundred, 50, 50}, {hundred, 100, 100},
		{hundred[:99], 99, 100}, // of 99 values the largest
		{[]float64{7}, 50, 7}, {[]float64{2, 1}, 50, 1}, {[]float64{3, 1, 2}, 50, 2}, {[]float64{3, 1, 2}, 99, 3},
	} {
		if got := Percentile(c.values, c.p); got != c.want {
			t.Errorf("percentile %d of %d values: got %v, want %v", c.p, len(c.values), got, c.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("the values were sorted in place")
	}
	if got := Percentile(nil, 50); !math.IsNaN(got) {
		t.Errorf("of none: got %v, want NaN", got)
	}
}
