package main

import "testing"

func TestShare(t *testing.T) {
	for text, want := range map[string]float64{"10%": 0.1, " 10 % ": 0.1, "0.1": 0.1, "0.5%": 0.005, "1": 1, "0": 0,
		"250%": 2.5} {
		var s share
		if err := s.Set(text); err != nil || !s.given || s.fraction < want-1e-15 || s.fraction > want+1e-15 {
			t.Errorf("%q is %v, %v; want %v", text, s.fraction, err, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "NaN", "10%%", "1e9", "10", "250"} {
		if (&share{}).Set(text) == nil {
			t.Errorf("%q passed", text)
		}
	}
}
