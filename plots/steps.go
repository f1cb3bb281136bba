package plots

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// StepSpec is the compute time of every step: the slowest rank's and the mean
// over ranks, one panel per arm on one scale.
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

// StepLines draws the maximum and the mean over ranks against the step, from
// zero, with the gap between them filled: what waiting for the slowest rank
// costs. Without a known value the error wraps ErrNothing.
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
	unit := TimeUnit(most)
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
		lineKey("slowest rank", line(vermillion, 1.6)), lineKey("mean over ranks", line(blue, 1.6, 5, 3)),
		fillKey("lost to waiting", tint(vermillion, 0.2)),
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
