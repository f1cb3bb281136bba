package flags

import (
	"testing"
)

func TestShare(t *testing.T) {
	for text, want := range map[string]float64{"10%": 0.1, " 10 % ": 0.1, "0.1": 0.1, "0.5%": 0.005, "1": 1, "0": 0,
		"250%": 2.5} {
		var s Share
		if err := s.Set(text); err != nil || !s.Given || s.Fraction < want-1e-15 || s.Fraction > want+1e-15 {
			t.Errorf("%q is %v, %v; want %v", text, s.Fraction, err, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "NaN", "10%%", "1e9", "10", "250"} {
		if (&Share{}).Set(text) == nil {
			t.Errorf("%q passed", text)
		}
	}
}
