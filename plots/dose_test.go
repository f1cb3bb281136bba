package plots

import (
	"errors"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// The line goes through the routers whose imbalance was set; the scale holds all intervals.
func TestDoseResponse(t *testing.T) {
	none := router.Undefined()
	arm := func(load, time router.Number, fitted bool) gain.DoseArm {
		return gain.DoseArm{MaxOverMean: load, Time: time, Low: time - 0.01, High: time + 0.01, Fitted: fitted}
	}
	d := gain.Dose{Confidence: 0.95, N: 4, Arms: []gain.DoseArm{
		arm(1, 1, true), arm(1.2, 1.02, true), arm(1.3, 1.2, false), arm(1.4, 1.04, true), arm(none, none, true)}}
	f, err := DoseResponse(&d, "What it costs")
	if want := "4 launches; bars are 95 % intervals."; err != nil || f.Caption != want || len(f.legend) != 2 {
		t.Errorf("caption %q, want %q; %d keys, %v", f.Caption, want, len(f.legend), err)
	}
	if y := f.panels[0].Y; y.Min >= 99 || y.Max <= 121 {
		t.Errorf("the scale from %g to %g cuts intervals between 99 and 121 %%", y.Min, y.Max)
	}
	d.Arms = d.Arms[:1]
	if _, err := DoseResponse(&d, ""); !errors.Is(err, ErrNothing) {
		t.Errorf("one arm: %v, want nothing to draw", err)
	}
}
