package plots

import (
	"fmt"
	"strings"

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
		Name: "step-time", Title: "How much does each step lose to its slowest ranks?",
		Caption: timedExtent(arms) + ". Observed compute time of a step added over layers: that of the slowest rank of each layer, and of the mean rank. " +
			"The gap is the straggler loss. Warm-up is drawn and in no mean; incomplete steps are blank.",
	}
	var answers []string
	for _, a := range arms {
		k := Steps{Name: a.Name}
		var loss []float64
		for _, step := range a.PerStep.Times.Steps {
			most, mean := step.SlowestNS.Float64(), step.MeanNS.Float64()
			switch {
			case !step.Number.Defined():
				continue
			case step.Excluded == imbalance.Incomplete:
				most, mean = nan, nan
			case step.Excluded == imbalance.Counts:
				loss = append(loss, most-mean)
			}
			k.Numbers, k.MaxNS, k.MeanNS = append(k.Numbers, int(step.Number)), append(k.MaxNS, most), append(k.MeanNS, mean)
		}
		s.Arms = append(s.Arms, k)
		if lost := mean(loss); known(lost) {
			answers = append(answers, fmt.Sprintf("%s: %s per step between the compute of the slowest ranks and of the mean rank.", a.Name, quantity.Duration(lost)))
		}
	}
	s.Alt = strings.Join(answers, " ")
	return s
}

// StepSpec is the compute time of every step: the slowest ranks' and the mean
// rank's, one panel per arm on one scale.
type StepSpec struct {
	Name, Title, Caption, Alt string
	Arms                      []Steps
}

// Steps is one arm: nanoseconds per step, in step order; NaN where unknown.
type Steps struct {
	Name    string
	Numbers []int
	MaxNS   []float64
	MeanNS  []float64
}

// StepLines draws both against the step, from zero, with the gap between them, the
// straggler loss, filled. Without a known value the error wraps ErrNothing.
func StepLines(s StepSpec) (Figure, error) {
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption, Alt: s.Alt}
	most := 0.0
	for _, a := range s.Arms {
		if len(a.MaxNS) != len(a.Numbers) || len(a.MeanNS) != len(a.Numbers) {
			return Figure{}, fmt.Errorf("steps of %q: want %d values, have %d and %d", a.Name, len(a.Numbers), len(a.MaxNS), len(a.MeanNS))
		}
		most = max(most, largest(a.MaxNS, a.MeanNS))
	}
	if most == 0 {
		return Figure{}, fmt.Errorf("steps %q: %w: want at least one step with time", s.Title, ErrNothing)
	}
	unit := quantity.TimeUnit(most)
	var panels []*plot.Plot
	for _, a := range s.Arms {
		p := newPanel(a.Name, "step", "compute time ("+unit.Name+")")
		p.X.Tick.Marker = indexTicks{a.Numbers, 8}
		p.Y.Tick.Marker = valueTicks{6, ""}
		p.Y.Min, p.Y.Max = 0, headroom(most/unit.Per)
		p.Add(rules{}, &steps{places(len(a.Numbers)), a, unit.Per})
		panels = append(panels, p)
	}
	f.arrange(panels, false, 220)
	f.legend = []key{
		lineKey("slowest rank of each layer", line(vermillion, 1.6)), lineKey("mean over ranks", line(blue, 1.6, 5, 3)),
		fillKey("straggler loss", tint(vermillion, 0.2)),
	}
	return f, nil
}

type steps struct {
	places
	Steps
	per float64
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
		c.FillPolygon(tint(vermillion, 0.2), band)
		c.StrokeLines(line(vermillion, 1.6), upper)
		c.StrokeLines(line(blue, 1.6, 5, 3), lower)
		for i := range upper {
			c.DrawGlyphNoClip(draw.GlyphStyle{Color: vermillion, Radius: 2.5, Shape: draw.CircleGlyph{}}, upper[i])
			c.DrawGlyphNoClip(draw.GlyphStyle{Color: blue, Radius: 2.5, Shape: draw.PyramidGlyph{}}, lower[i])
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
