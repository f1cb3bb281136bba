package plots

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// HeatSpec is what a heat map shows: grids of the same columns, one panel each,
// on one colour scale.
type HeatSpec struct {
	Name, Title, Caption, Alt string
	RowLabel, ColumnLabel     string // axis labels, such as "layer" and "expert"
	Quantity                  string // what is divided by its mean: "time" or "load"
	Grids                     []Grid
}

// heatLevels is the number of colours of the scale. An odd number has one in
// the middle, which is the mean's.
const heatLevels = 41

// HeatMap draws every cell relative to the mean of its row: 0 to 2 × mean on a
// diverging scale whose neutral middle is the mean, so that perfect balance is
// a plain field and does not stretch its noise over the scale. Beyond 2 × mean
// the colour stays that of 2. Unknown cells are hatched. Grids must be
// rectangular; without a known cell in any of them the error wraps ErrNothing.
//
// The scale is Moreland's smooth blue–red map ("Diverging Color Maps for
// Scientific Visualization", 2009), even in perceived steps and readable with
// the common colour deficiencies.
func HeatMap(s HeatSpec) (Figure, error) {
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption, Alt: s.Alt}
	unknown, cut, any := false, false, false
	for i, g := range s.Grids {
		if len(g.Values) != len(g.Rows) {
			return Figure{}, fmt.Errorf("heat map %q: want %d rows of values, have %d", g.Name, len(g.Rows), len(g.Values))
		}
		for r, row := range g.Values {
			if len(row) != len(g.Columns) {
				return Figure{}, fmt.Errorf("heat map %q row %d: want %d values, have %d", g.Name, r, len(g.Columns), len(row))
			}
		}
		if g.empty() {
			continue
		}
		any = true
		h := &heat{cells: g.RelativeToRow(), cuts: g.Cuts, colors: heatColors()}
		unknown, cut = unknown || h.holes(), cut || len(g.Cuts) > 0
		p := newPanel(g.Name, "", s.RowLabel)
		if i == len(s.Grids)-1 {
			p.X.Label.Text = s.ColumnLabel
		}
		p.X.Tick.Marker = indexTicks{g.Columns, 17}
		height := heatHeight(len(g.Rows))
		p.Y.Tick.Marker = indexTicks{g.Rows, max(1, int(height/13))}
		p.Y.Scale = plot.InvertedScale{Normalizer: plot.LinearScale{}} // layer 0 on top
		p.Add(h)
		f.panels = append(f.panels, []*plot.Plot{p})
		f.height = max(f.height, height)
	}
	if !any {
		return Figure{}, fmt.Errorf("heat map %q: %w: want at least one cell with a value", s.Title, ErrNothing)
	}
	f.height = (f.height + 52) * vg.Length(len(f.panels))
	f.legend = heatLegend(s.Quantity, unknown, cut)
	return f, nil
}

// heatHeight gives few rows enough height to be seen and many enough to be read.
func heatHeight(rows int) vg.Length {
	return vg.Length(min(max(18*rows, 40), max(220, 5*rows)))
}

// heat draws the cells of one grid, already relative to the mean.
type heat struct {
	cells  [][]float64
	cuts   []int
	colors []color.Color
}

// heatColors are the colours from 0 to 2 × mean.
func heatColors() []color.Color {
	return moreland.SmoothBlueRed().Palette(heatLevels).Colors()
}

// unknownLevel is the level of a cell of which nothing is known.
const unknownLevel = -1

// level is the index of a relative value's colour: 0 ↦ first, 1 ↦ the middle,
// 2 and more ↦ last.
func level(v float64) int {
	if !known(v) {
		return unknownLevel
	}
	return int(math.Round(min(max(v, 0), 2) / 2 * (heatLevels - 1)))
}

// run is neighbouring cells of one level: those from a column up to, and
// without, another.
type run struct{ level, from, to int }

func runs(row []float64) (out []run) {
	for j, v := range row {
		if l := level(v); j > 0 && out[len(out)-1].level == l {
			out[len(out)-1].to = j + 1
		} else {
			out = append(out, run{l, j, j + 1})
		}
	}
	return out
}

func (h *heat) holes() bool {
	for _, row := range h.cells {
		for _, v := range row {
			if !known(v) {
				return true
			}
		}
	}
	return false
}

// DataRange implements plot.DataRanger: cell i covers i − ½ to i + ½.
func (h *heat) DataRange() (xmin, xmax, ymin, ymax float64) {
	return -0.5, float64(len(h.cells[0])) - 0.5, -0.5, float64(len(h.cells)) - 0.5
}

// Plot implements plot.Plotter.
func (h *heat) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	h.fill(c, x, y)
	h.drawCuts(c, x)
	c.SetLineStyle(line(softInk, 0.5))
	c.Stroke(c.Rectangle.Path())
}

// fill draws the cells. All of one colour are one path, and neighbours of one
// colour one rectangle, which keeps a figure of 61 layers and 256 experts small.
// Rectangles reach a hair over the next ones so that no seams show.
func (h *heat) fill(c draw.Canvas, x, y func(float64) vg.Length) {
	const overlap = 0.2
	paths := make([]vg.Path, heatLevels)
	var holes []vg.Rectangle
	for i, row := range h.cells {
		low, high := y(float64(i)+0.5), y(float64(i)-0.5)
		for _, r := range runs(row) {
			cells := box(x(float64(r.from)-0.5), low, x(float64(r.to)-0.5), high)
			if r.level == unknownLevel {
				holes = append(holes, cells)
				continue
			}
			cells.Max.X, cells.Min.Y = min(cells.Max.X+overlap, c.Max.X), max(low-overlap, c.Min.Y)
			paths[r.level] = append(paths[r.level], cells.Path()...)
		}
	}
	for l, path := range paths {
		if len(path) > 0 {
			c.SetColor(h.colors[l])
			c.Fill(path)
		}
	}
	for _, r := range holes {
		hatchBox(c, paper, waitInk, r)
	}
}

// drawCuts marks where another rank begins: by lines, or, where so many would
// hide the field, by notches at its edges.
func (h *heat) drawCuts(c draw.Canvas, x func(float64) vg.Length) {
	for _, cut := range h.cuts {
		at := x(float64(cut) - 0.5)
		if len(h.cuts) <= manyRanks {
			c.StrokeLine2(line(ink, 0.7), at, c.Min.Y, at, c.Max.Y)
			continue
		}
		c.StrokeLine2(line(ink, 0.7), at, c.Min.Y, at, c.Min.Y+5)
		c.StrokeLine2(line(ink, 0.7), at, c.Max.Y-5, at, c.Max.Y)
	}
}

func heatLegend(quantity string, unknown, cut bool) []key {
	colors := heatColors()
	keys := []key{{
		"≥ 2 × the layer's mean " + quantity + " (grey: the mean)", colorBarWidth,
		func(c draw.Canvas, r vg.Rectangle) {
			zero := textStyle(textSize, ink)
			zero.YAlign = draw.YCenter
			c.FillText(zero, vg.Point{X: r.Min.X, Y: textMiddle(r)}, "0")
			r.Min.X += zero.Width("0") + sampleGap
			w := (r.Max.X - r.Min.X) / vg.Length(len(colors))
			for i, col := range colors {
				left := r.Min.X + vg.Length(i)*w
				fillBox(c, col, box(left, r.Min.Y, min(left+w+0.2, r.Max.X), r.Max.Y))
			}
			middle := (r.Min.X + r.Max.X) / 2
			c.StrokeLine2(line(ink, 0.8), middle, r.Min.Y-2, middle, r.Max.Y+2)
		},
	}}
	if cut {
		keys = append(keys, key{"next rank", 1, func(c draw.Canvas, r vg.Rectangle) { fillBox(c, ink, r) }})
	}
	if unknown {
		keys = append(keys, hatchKey("nothing recorded", paper, waitInk))
	}
	return keys
}
