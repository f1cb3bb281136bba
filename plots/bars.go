package plots

import (
	"fmt"
	"image/color"

	"github.com/moebalance/moebalance/router/quantity"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// BarSpec is what grouped bars show: one group per rank or layer, one bar per
// series, that is per arm.
type BarSpec struct {
	Name, Title, Caption, Alt string
	GroupLabel                string // "rank" or "layer"
	ValueLabel                string // the quantity without its unit: "expert time per step"
	Groups                    []int  // the number of each group
	Series                    []BarSeries
	Nanoseconds               bool // values are times, and the axis gets the unit that fits
	Unit                      string
	Mean                      bool // draw the mean of each series, and its floor
}

// BarSeries is one value per group; NaN draws no bar. Floor is the least that
// the largest bar could be with this total, in the same unit; NaN where no such
// floor is known.
type BarSeries struct {
	Name   string
	Values []float64
	Floor  float64
}

// BarChart draws the bars from zero. With Mean, a dashed line shows what every
// group would have if the series were even, and a dotted one the floor. Values
// must not be negative; without a known value the error wraps ErrNothing.
func BarChart(s BarSpec) (Figure, error) {
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption, Alt: s.Alt, height: 240}
	lists := make([][]float64, len(s.Series))
	any := false
	for i, series := range s.Series {
		if len(series.Values) != len(s.Groups) {
			return Figure{}, fmt.Errorf("bars %q: want %d values, have %d", series.Name, len(s.Groups), len(series.Values))
		}
		any = any || len(knowns(series.Values)) > 0
		lists[i] = append([]float64{series.Floor}, series.Values...)
	}
	if !any {
		return Figure{}, fmt.Errorf("bars %q: %w: want at least one value", s.Title, ErrNothing)
	}
	unit := quantity.Unit{Name: s.Unit, Per: 1}
	if s.Nanoseconds {
		unit = quantity.TimeUnit(largest(lists...))
	}
	p := newPanel("", s.GroupLabel, s.ValueLabel+" ("+unit.Name+")")
	p.X.Tick.Marker = indexTicks{s.Groups, 24}
	p.Y.Tick.Marker = valueTicks{6, ""}
	p.Y.Min, p.Y.Max = 0, headroom(largest(lists...)/unit.Per)
	p.Add(rules{}, &bars{places(len(s.Groups)), s.Series, unit.Per, s.Mean})
	f.panels = [][]*plot.Plot{{p}}
	f.legend = barLegend(s)
	return f, nil
}

// headroom is the top of an axis that starts at 0; 1 for nothing but zeros.
func headroom(most float64) float64 {
	if most <= 0 {
		return 1
	}
	return most * 1.06
}

func barLegend(s BarSpec) []key {
	var keys []key
	floor := false
	for i, series := range s.Series {
		if len(knowns(series.Values)) > 0 {
			keys = append(keys, fillKey(series.Name, seriesColor(i)))
		}
		floor = floor || known(series.Floor)
	}
	if s.Mean {
		keys = append(keys, lineKey("mean over "+s.GroupLabel+"s", meanLine(ink)))
		if floor {
			keys = append(keys, lineKey("floor of the largest", floorLine(ink)))
		}
	}
	return keys
}

func meanLine(c color.Color) draw.LineStyle  { return line(c, 1.2, 6, 3) }
func floorLine(c color.Color) draw.LineStyle { return line(c, 1.2, 1.5, 2) }

// bars draws the series side by side within each group.
type bars struct {
	places
	series []BarSeries
	per    float64
	mean   bool
}

// groupShare is the part of a group's width that its bars fill: less where
// there are few groups, so that bars stay bars.
func groupShare(groups int) float64 { return min(0.78, 0.3+0.06*float64(groups)) }

// Plot implements plot.Plotter.
func (b *bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	share := groupShare(int(b.places))
	width := share / float64(len(b.series))
	for s, series := range b.series {
		for g, v := range series.Values {
			if !drawable(v) {
				continue
			}
			left := float64(g) - share/2 + float64(s)*width
			fillBox(c, seriesColor(s), box(x(left), y(0), x(left+width), y(v/b.per)))
		}
	}
	if !b.mean {
		return
	}
	for s, series := range b.series {
		if m := mean(series.Values); drawable(m) {
			acrossLine(c, meanLine(shade(seriesColor(s))), y(m/b.per))
		}
		if drawable(series.Floor) {
			acrossLine(c, floorLine(ink), y(series.Floor/b.per))
		}
	}
}

// shade is c, darkened so that a line shows on bars of its own colour.
func shade(c color.NRGBA) color.NRGBA {
	dark := func(x uint8) uint8 { return uint8(float64(x) * 0.55) }
	return color.NRGBA{dark(c.R), dark(c.G), dark(c.B), 0xff}
}

func acrossLine(c draw.Canvas, sty draw.LineStyle, y vg.Length) {
	c.StrokeLine2(sty, c.Min.X, y, c.Max.X, y)
}

// rules draws a faint horizontal line at every labelled tick.
type rules struct{}

// Plot implements plot.Plotter.
func (rules) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		acrossLine(c, line(gridInk, 0.6), y(t.Value))
	}
}
