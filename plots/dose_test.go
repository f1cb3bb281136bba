package plots

import (
	"errors"
	"math"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// The line goes through the mean of the routers whose imbalance was set, with the slope that launches
// gave, or is bent; the scale holds all intervals.
func TestDoseResponse(t *testing.T) {
	none := router.Undefined()
	arm := func(load, time router.Number, fitted bool) gain.DoseArm {
		return gain.DoseArm{MaxOverMean: load, Time: time, Low: time - 0.01, High: time + 0.01, Fitted: fitted}
	}
	d := gain.Dose{Slope: 0.1, Low: 0.05, High: 0.15, Confidence: 0.95, N: 4, Arms: []gain.DoseArm{
		arm(1, 1, true), arm(1.2, 1.02, true), arm(1.3, 1.2, false), arm(1.4, 1.04, true), arm(none, none, true)}}
	f, err := DoseResponse(&d, "What it costs")
	if err != nil {
		t.Fatal(err)
	}
	if want := "4 launches; bars are 95 % intervals. The line does not use the learned router."; f.Caption != want ||
		f.Title != "What it costs" || f.legend[1].label != "fitted line" {
		t.Errorf("%q: caption %q, want %q", f.Title, f.Caption, want)
	}
	d.Bent = true
	if f, err := DoseResponse(&d, ""); err != nil || f.legend[1].label != "straight between routers" {
		t.Errorf("%+v, %v", f.legend, err)
	}
	y := f.panels[0].Y
	if y.Min >= 99 || y.Max <= 121 {
		t.Errorf("the scale from %g to %g cuts intervals between 99 and 121 %%", y.Min, y.Max)
	}
	set := &series{at: []float64{1, 1.2, 1.4}, y: []float64{100, 102.5, 104}}
	if line := set.trend(10, 1, 1.4).y; math.Abs(line[0]-100.1667) > 1e-4 || math.Abs(line[1]-104.1667) > 1e-4 {
		t.Errorf("line through %v, want 102.1667 − 2 and + 2", line)
	}
	one := gain.Dose{Slope: 0.1, Low: none, High: none, N: 1, Arms: []gain.DoseArm{arm(1, 1, true), arm(1.4, 1.04, true)}}
	if f, err := DoseResponse(&one, ""); err != nil || len(f.legend) != 2 {
		t.Errorf("%d keys, want 2 (no learned router is drawn): %v", len(f.legend), err)
	}
	d.Arms = d.Arms[:1]
	if _, err := DoseResponse(&d, ""); !errors.Is(err, ErrNothing) {
		t.Errorf("one arm: %v, want nothing to draw", err)
	}
}
