package metrics

import (
	"math"
	"strings"
	"testing"
)

// A rule whose match stops within the number, or before a prefix of the unit, is an error
// that shows the line.
func TestMatchesTheWholeNumber(t *testing.T) {
	for _, c := range []struct {
		rule, line string
		want       float64 // NaN where it is an error
	}{
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1150.5 tok/s", 1150.5},
		{`speed:tok/s:higher=speed ([0-9.,]+)`, "speed 1,150.5 tok/s", 1150.5},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1,150.5 tok/s", math.NaN()},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1.15e3 tok/s", math.NaN()},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1.1 ktok/s", math.NaN()},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1.1x ktok/s", math.NaN()},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1.1k", math.NaN()},
		{`speed:tok/s:higher=speed ([0-9]+)`, "speed 1150", 1150},
		{`time:s:lower=took ([0-9.]+)`, "took 3.5 ms", math.NaN()},
		{`time:s:lower=took ([0-9.]+)`, "took 3.5 s.", 3.5},
		{`time:ms:lower=took ([0-9.]+)`, "took 3.5ms, ok", 3.5},
		{`speed:tok/s:higher=speed [0-9]+`, "no", math.NaN()},
	} {
		rule, err := ParseCustom(c.rule)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Parse("out", strings.NewReader(c.line+"\n"), []Custom{rule})
		if math.IsNaN(c.want) {
			if err == nil || c.line != "no" && !strings.Contains(err.Error(), c.line) {
				t.Errorf("%s of %q: %v, %v", c.rule, c.line, r.Metrics, err)
			}
			continue
		}
		if err != nil || float64(r.Metrics[0].Value) != c.want {
			t.Errorf("%s of %q: %v, %v", c.rule, c.line, r.Metrics, err)
		}
	}
}

// Of several matches a rule takes the last or their median, and says of how many.
func TestPicksAmongMatches(t *testing.T) {
	const out = "speed 10\nspeed 20\nspeed 40\n"
	for pick, want := range map[string]float64{":last": 40, ":median": 20, ":first": math.NaN(), "": math.NaN()} {
		rule, err := ParseCustom("speed:tok/s:higher" + pick + "=speed ([0-9]+)")
		var r Result
		if err == nil {
			r, err = Parse("out", strings.NewReader(out), []Custom{rule})
		}
		switch {
		case math.IsNaN(want):
			if err == nil {
				t.Errorf("%q: no error", pick)
			}
		case err != nil || float64(r.Metrics[0].Value) != want || !strings.Contains(strings.Join(r.Warnings, ""), "3 matches"):
			t.Errorf("%q: %v, %v, %v", pick, r.Metrics, r.Warnings, err)
		}
	}
}
