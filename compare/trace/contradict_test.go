package trace

import "testing"

// Load and time per rank, by hand: right counts, counts of the other arm, of another run,
// and of batches so small that GEMMs read weights.
func TestContradicts(t *testing.T) {
	for _, c := range []struct {
		name       string
		time, load []float64
		slots      float64
		doubted    bool
	}{
		{"time follows load", []float64{4.1, 2, 2, 1.9}, []float64{176, 74, 75, 75}, 512, false},
		{"time follows it weakly", []float64{1, 1, 1.24, 1}, []float64{70, 75, 185, 70}, 128, false},
		{"even both", []float64{1, 1.01, 1, 1}, []float64{100, 100, 100, 100}, 512, false},
		{"uneven load, even time", []float64{1, 1.01, 1, 1}, []float64{176, 74, 75, 75}, 512, true},
		{"the same in decoding", []float64{1, 1.01, 1, 1}, []float64{176, 74, 75, 75}, 16, false},
		{"even load, uneven time", []float64{4.1, 2, 2, 1.9}, []float64{100, 100, 100, 101}, 512, true},
		{"another rank", []float64{4.1, 2, 2, 1.9}, []float64{74, 176, 75, 75}, 512, true},
		{"two busy ranks", []float64{4.1, 4, 2, 1.9}, []float64{170, 176, 75, 75}, 512, false},
	} {
		if why := contradicts(c.time, c.load, c.slots); (why != "") != c.doubted {
			t.Errorf("%s: have %q", c.name, why)
		}
	}
}
