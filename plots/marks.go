package plots

import (
	"cmp"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/moebalance/moebalance/router"
)

// marks are points with their intervals, in values of the axes. Points without a value are left out; a
// point without an interval has one of no length.
type marks struct {
	plotter.XYs
	plotter.YErrors
}

// add adds a point: 3, 12 %, 10 % and 15 % is a point at 12 whose bar goes down 2 and up 3.
func (m *marks) add(at float64, y, low, high router.Number) {
	if !y.Defined() {
		return
	}
	if !low.Defined() || !high.Defined() {
		low, high = y, y
	}
	m.XYs = append(m.XYs, plotter.XY{X: at, Y: y.Float64()})
	m.YErrors = append(m.YErrors, struct{ Low, High float64 }{(y - low).Float64(), (high - y).Float64()})
}

// ends are the values that the scale has to hold: every interval's two ends.
func (m *marks) ends() (values []float64) {
	for i, p := range m.XYs {
		values = append(values, p.Y-m.YErrors[i].Low, p.Y+m.YErrors[i].High)
	}
	return values
}

// points draws the points, with their intervals as bars.
func (m *marks) points(style draw.GlyphStyle, bars color.Color) []plot.Plotter {
	return []plot.Plotter{&plotter.YErrorBars{XYs: m.XYs, YErrors: m.YErrors, LineStyle: line(bars, 1.2)},
		&plotter.Scatter{XYs: m.XYs, GlyphStyle: style}}
}

// band fills what is between the ends of neighboring intervals.
func (m *marks) band(fill color.Color) plot.Plotter {
	var around plotter.XYs
	for i, p := range m.XYs {
		around = append(around, plotter.XY{X: p.X, Y: p.Y + m.YErrors[i].High})
	}
	for i, p := range slices.Backward(m.XYs) {
		around = append(around, plotter.XY{X: p.X, Y: p.Y - m.YErrors[i].Low})
	}
	return &plotter.Polygon{XYs: []plotter.XYs{around}, Color: fill}
}

// line joins the points.
func (m *marks) line(style draw.LineStyle) plot.Plotter {
	return &plotter.Line{XYs: m.XYs, LineStyle: style}
}

// across is a line over the whole width at a value of the y axis.
func across(at float64, style draw.LineStyle) plot.Plotter {
	return &plotter.Function{F: func(float64) float64 { return at }, Samples: 2, LineStyle: style}
}

// rules are faint horizontal lines at the labeled ticks.
func rules() plot.Plotter { return &plotter.Grid{Horizontal: line(gridInk, 0.6)} }

// disc is the sign of a measured point, ring of one to compare it with.
func disc(c color.Color) draw.GlyphStyle {
	return draw.GlyphStyle{Color: c, Radius: 3.5, Shape: draw.CircleGlyph{}}
}

func ring(c color.Color) draw.GlyphStyle {
	return draw.GlyphStyle{Color: c, Radius: 3.5, Shape: draw.RingGlyph{}}
}

// padded is the range of percentages, 0 among them, and 8 % more at both ends, or 1 % of nothing.
func padded(values ...float64) (low, high float64) {
	for _, v := range knowns(values) {
		low, high = min(low, v), max(high, v)
	}
	pad := cmp.Or((high-low)*0.08, 1)
	return low - pad, high + pad
}
