package plots

import (
	"cmp"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/moebalance/moebalance/router"
)

// The marks that charts are put together from. Positions are values of the axes.

// series is a line of points, with intervals where low and high are known. Where a value is unknown it breaks.
type series struct {
	at, y, low, high []float64
	style            draw.LineStyle   // of no width for points alone
	glyph            draw.GlyphDrawer // nil for a line alone
	radius           vg.Length        // of the points; 0 is 2.5
}

// point is the sign of a point.
func (s *series) point() draw.GlyphStyle {
	return draw.GlyphStyle{Color: s.style.Color, Radius: cmp.Or(s.radius, 2.5), Shape: s.glyph}
}

func (s *series) add(at float64, y router.Number) {
	if y.Defined() {
		s.at, s.y = append(s.at, at), append(s.y, y.Float64())
	}
}

// bounded adds a point with its interval.
func (s *series) bounded(at float64, y, low, high router.Number) {
	s.at, s.y = append(s.at, at), append(s.y, y.Float64())
	s.low, s.high = append(s.low, low.Float64()), append(s.high, high.Float64())
}

// Plot implements plot.Plotter.
func (s *series) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	if s.style.Width > 0 {
		for from, to := range stretches(s.y) {
			var points []vg.Point
			for i := from; i < to; i++ {
				points = append(points, vg.Point{X: x(s.at[i]), Y: y(s.y[i])})
			}
			c.StrokeLines(s.style, points)
		}
	}
	for i, v := range s.y {
		if s.low != nil && known(s.low[i]) && known(s.high[i]) {
			c.StrokeLine2(line(s.style.Color, 1.2), x(s.at[i]), y(s.low[i]), x(s.at[i]), y(s.high[i]))
		}
		if s.glyph != nil && known(v) {
			c.DrawGlyphNoClip(s.point(), vg.Point{X: x(s.at[i]), Y: y(v)})
		}
	}
}

// stretches are the ranges of indexes without an unknown value.
func stretches(values ...[]float64) func(yield func(from, to int) bool) {
	return func(yield func(from, to int) bool) {
		from := 0
		for i := range len(values[0]) + 1 {
			broken := i == len(values[0])
			for _, list := range values {
				broken = broken || !known(list[i])
			}
			if !broken {
				continue
			}
			if i > from && !yield(from, i) {
				return
			}
			from = i + 1
		}
	}
}

// band fills what is between two lines.
type band struct {
	at, low, high []float64
	color         color.Color
}

// Plot implements plot.Plotter.
func (b band) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for from, to := range stretches(b.low, b.high) {
		var around []vg.Point
		for i := from; i < to; i++ {
			around = append(around, vg.Point{X: x(b.at[i]), Y: y(b.high[i])})
		}
		for i := to - 1; i >= from; i-- {
			around = append(around, vg.Point{X: x(b.at[i]), Y: y(b.low[i])})
		}
		c.FillPolygon(b.color, around)
	}
}

// across is a line over the whole width at a value of the y axis; unknown draws nothing.
type across struct {
	at    float64
	style draw.LineStyle
}

// Plot implements plot.Plotter.
func (a across) Plot(c draw.Canvas, p *plot.Plot) {
	if _, y := p.Transforms(&c); known(a.at) {
		c.StrokeLine2(a.style, c.Min.X, y(a.at), c.Max.X, y(a.at))
	}
}

// uprights are lines at values of the x axis.
type uprights struct {
	at    []float64
	style draw.LineStyle
}

// Plot implements plot.Plotter.
func (u *uprights) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, at := range u.at {
		c.StrokeLine2(u.style, x(at), c.Min.Y, x(at), c.Max.Y)
	}
}

// rules draws a faint horizontal line at every labeled tick.
type rules struct{}

// Plot implements plot.Plotter.
func (rules) Plot(c draw.Canvas, p *plot.Plot) {
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		across{t.Value, line(gridInk, 0.6)}.Plot(c, p)
	}
}

// places is the range of an x axis of that many places, numbered from 0, each
// one wide. The chart sets y itself.
type places int

// DataRange implements plot.DataRanger.
func (n places) DataRange() (xmin, xmax, ymin, ymax float64) {
	return -0.5, float64(n) - 0.5, math.Inf(1), math.Inf(-1)
}

// Plot implements plot.Plotter: places alone draw nothing.
func (places) Plot(draw.Canvas, *plot.Plot) {}

// padded is the range of percentages, 0 among them, and 8 % more at both ends, or 1 % of nothing.
func padded(values ...float64) (low, high float64) {
	for _, v := range values {
		if known(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	pad := cmp.Or((high-low)*0.08, 1)
	return low - pad, high + pad
}
