package plots

import (
	"fmt"
	"image/color"
	"slices"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router/quantity"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
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
		p.Add(rules{}, &steps{places(len(a.Numbers)), a, unit.Per, armColor(a.Name, i)})
		panels = append(panels, p)
	}
	f.arrange(panels, false, 220)
	f.legend = []key{
		lineKey("slowest rank of each layer", line(ink, 1.6)), lineKey("mean over ranks", line(ink, 1.6, 5, 3)),
		fillKey("between them: loss", tint(softInk, 0.35)),
	}
	return f, nil
}

type steps struct {
	places
	Steps
	per   float64
	color color.NRGBA
}

// Plot implements plot.Plotter. Unknown steps break the lines.
func (s *steps) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var upper, lower []vg.Point
	flush := func() {
		if len(upper) == 0 {
			return
		}
		band := append([]vg.Point{}, upper...)
		for i := len(lower) - 1; i >= 0; i-- {
			band = append(band, lower[i])
		}
		c.FillPolygon(tint(s.color, 0.2), band)
		c.StrokeLines(line(s.color, 1.6), upper)
		c.StrokeLines(line(s.color, 1.6, 5, 3), lower)
		for i := range upper {
			c.DrawGlyphNoClip(draw.GlyphStyle{Color: s.color, Radius: 2.5, Shape: draw.CircleGlyph{}}, upper[i])
			c.DrawGlyphNoClip(draw.GlyphStyle{Color: s.color, Radius: 2.5, Shape: draw.PyramidGlyph{}}, lower[i])
		}
		upper, lower = nil, nil
	}
	for i := range s.Numbers {
		if !drawable(s.MaxNS[i]) || !drawable(s.MeanNS[i]) {
			flush()
			continue
		}
		at := x(float64(i))
		upper = append(upper, vg.Point{X: at, Y: y(s.MaxNS[i] / s.per)})
		lower = append(lower, vg.Point{X: at, Y: y(s.MeanNS[i] / s.per)})
	}
	flush()
}
