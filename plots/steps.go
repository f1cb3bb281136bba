package plots

import (
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router/quantity"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"
)

// StepTimes is the compute time of every marked step, warm-up among them. Incomplete
// steps are left blank.
func StepTimes(arms ...Arm) StepSpec {
	s := StepSpec{
		Name: "step-time",
		Caption: timedExtent(arms) +
			". Observed compute time of a step added over layers: that of the slowest rank of each layer, and of the " +
			"mean rank. " +
			"Warm-up is drawn and in no mean; incomplete steps are blank.",
	}
	var found findings
	for _, a := range arms {
		k := Steps{Name: a.Name}
		var counted []float64
		for _, step := range a.PerStep.Times.Steps {
			most, mean := step.SlowestNS.Float64(), step.MeanNS.Float64()
			switch {
			case !step.Number.Defined():
				continue
			case step.Excluded == imbalance.Incomplete:
				most, mean = nan, nan
			case step.Excluded == imbalance.Counts:
				counted = append(counted, most)
			}
			k.Numbers, k.MaxNS, k.MeanNS = append(k.Numbers, int(step.Number)), append(k.MaxNS, most),
				append(k.MeanNS, mean)
		}
		s.Arms = append(s.Arms, k)
		if most := knowns(counted); len(most) > 0 {
			found.add(a.Name, fmt.Sprintf("slowest ranks take %s to %s", quantity.Duration(slices.Min(most)),
				quantity.Duration(slices.Max(most))))
		}
	}
	s.Title = found.of("compute " + per(arms))
	return s
}

// StepSpec is the compute of the slowest ranks and of the mean rank in every step: one panel per
// arm on one scale.
type StepSpec struct {
	Name, Title, Caption string
	Arms                 []Steps
}

// Steps is one panel: nanoseconds per step, in step order; NaN where unknown.
type Steps struct {
	Name    string
	Numbers []int
	MaxNS   []float64 // of the upper line
	MeanNS  []float64 // of the lower one
}

// StepLines draws both against the step, from zero, with the gap between them filled.
// Without a known value the error wraps ErrNothing.
func StepLines(s StepSpec) (Figure, error) {
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption}
	most := 0.0
	for _, a := range s.Arms {
		most = max(most, largest(a.MaxNS, a.MeanNS))
	}
	if most == 0 {
		return Figure{}, fmt.Errorf("steps %q: %w: want at least one step with time", s.Name, ErrNothing)
	}
	unit := quantity.TimeUnit(most)
	var panels []*plot.Plot
	for i, a := range s.Arms {
		p := newPanel(panelTitle(a.Name, len(s.Arms)), "step", "compute time ("+unit.Name+")")
		p.X.Tick.Marker = indexTicks{a.Numbers, 8}
		p.Y.Tick.Marker = valueTicks{6, ""}
		p.Y.Min, p.Y.Max = 0, headroom(most/unit.Per)
		at, col := numbered(len(a.Numbers)), armColor(a.Name, i)
		slowest, means := scaled(a.MaxNS, unit.Per), scaled(a.MeanNS, unit.Per)
		p.Add(rules{}, places(len(at)), band{at, means, slowest, tint(col, 0.2)},
			&series{at: at, y: slowest, style: line(col, 1.6), glyph: draw.CircleGlyph{}},
			&series{at: at, y: means, style: line(col, 1.6, 5, 3), glyph: draw.PyramidGlyph{}})
		panels = append(panels, p)
	}
	f.arrange(panels, false, 220)
	f.legend = []key{
		lineKey("slowest rank of each layer", line(ink, 1.6)), lineKey("mean over ranks", line(ink, 1.6, 5, 3)),
		fillKey("between them: loss", tint(softInk, 0.35)),
	}
	return f, nil
}
