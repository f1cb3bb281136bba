package flags

import (
	"math"
	"testing"
)

func TestShare(t *testing.T) {
	for text, want := range map[string]float64{"10%": 0.1, " 10 % ": 0.1, "0.1": 0.1, "0.5%": 0.005, "1": 1, "0": 0,
		"250%": 2.5, "1000%": 10} {
		s := Share("")
		if err := s.Set(text); err != nil || !s.Given || math.Abs(s.Is-want) > 1e-15 {
			t.Errorf("%q is %v, %v; want %v", text, s.Is, err, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "NaN", "10%%", "1e9", "10", "250", "1001%", "2000%"} {
		if s := Share("10%"); s.Set(text) == nil {
			t.Errorf("%q passed", text)
		}
	}
}
