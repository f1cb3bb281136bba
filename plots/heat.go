package plots

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/moebalance/moebalance/router/quantity"
)

// HeatSpec is the content of a heat map: grids of the same columns, one panel each,
// on one color scale.
type HeatSpec struct {
	Name, Title, Caption  string
	RowLabel, ColumnLabel string // axis labels, such as "layer" and "expert"
	Quantity              string // what is divided by its mean: "time" or "load"
	Grids                 []Grid
}

// heatLevels is the number of colors of the scale. An odd number has one in
// the middle, which is the mean's.
const heatLevels = 41

// HeatMap draws every cell relative to the mean of its row, on a diverging scale whose
// neutral middle is the mean. The scale reaches as far as the data, but at least 10 %
// from the mean, so that balance is a plain field and its noise not stretched. Beyond
// 2 × mean it is logarithmic, so that 12 × differs from 3 ×. Unknown cells are hatched. Grids must be rectangular;
// without a known cell in
// any of them the error wraps ErrNothing.
//
// The scale is blue below and brown above a neutral mean, and darker the larger the value, so
// that it reads in gray and with the common color deficiencies, and without the colors of the arms.
func HeatMap(s HeatSpec) (Figure, error) {
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption}
	unknown, any := false, false
	span := s.scale()
	for i, g := range s.Grids {
		if g.empty() {
			continue
		}
		any = true
		h := &heat{cells: g.RelativeToRow(), colors: heatColors(), scale: span}
		unknown = unknown || len(knowns(slices.Concat(h.cells...))) < len(h.cells)*len(h.cells[0])
		p := newPanel(panelTitle(g.Name, len(s.Grids)), "", s.RowLabel)
		if i == len(s.Grids)-1 {
			p.X.Label.Text = s.ColumnLabel
		}
		p.X.Tick.Marker = indexTicks{labels(g.Columns), 17}
		rows := len(g.Rows) // few get enough height to be seen, many enough to be read
		height := vg.Length(min(max(18*rows, 40), max(220, 5*rows)))
		p.Y.Tick.Marker = indexTicks{labels(g.Rows), max(1, int(height/13))}
		p.Y.Scale = plot.InvertedScale{Normalizer: plot.LinearScale{}} // layer 0 on top
		p.Add(h)
		f.panels = append(f.panels, p)
		f.height = max(f.height, height)
	}
	if !any {
		return Figure{}, fmt.Errorf("heat map %q: %w: want at least one cell with a value", s.Name, ErrNothing)
	}
	f.height = (f.height + 52) * vg.Length(len(f.panels))
	f.legend = heatLegend(s.Quantity, span, unknown)
	return f, nil
}

// scale is how far from the mean the colors reach to both sides: as a share of it, or, where
// that is not enough for the largest, as a factor on a logarithmic scale.
type scale struct {
	span float64
	log  bool
}

// scale reaches the largest cell.
func (s HeatSpec) scale() scale {
	most := 0.0
	for _, g := range s.Grids {
		for _, v := range knowns(slices.Concat(g.RelativeToRow()...)) {
			most = max(most, math.Abs(v-1))
		}
	}
	for _, nice := range []float64{0.1, 0.2, 0.3, 0.5, 1} {
		if most <= nice {
			return scale{span: nice}
		}
	}
	for _, nice := range []float64{3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128} {
		if most+1 <= nice*1.005 {
			return scale{nice, true}
		}
	}
	return scale{256, true}
}

// at is where a relative value lies, from −1 to 1.
func (s scale) at(v float64) float64 {
	along := (v - 1) / s.span
	if s.log {
		along = math.Log(v) / math.Log(s.span)
	}
	return min(max(along, -1), 1)
}

// heat draws the cells of one grid, already relative to the mean.
type heat struct {
	cells  [][]float64
	colors []color.Color
	scale  scale
}

// heatStops are colors of the scale at even distances, upwards and ever darker.
var heatStops = []color.NRGBA{{0xee, 0xf5, 0xff, 0xff}, {0xc9, 0xdd, 0xf6, 0xff}, {0xc3, 0xc3, 0xc3, 0xff},
	{0xd9, 0x83, 0x36, 0xff}, {0x5e, 0x22, 0x06, 0xff}}

// heatColors are the colors of the scale, upwards.
func heatColors() []color.Color {
	colors := make([]color.Color, heatLevels)
	for i := range colors {
		along := float64(i) / (heatLevels - 1) * float64(len(heatStops)-1)
		at := min(int(along), len(heatStops)-2)
		between := func(a, b uint8) uint8 {
			return uint8(math.Round(float64(a) + (along-float64(at))*(float64(b)-float64(a))))
		}
		a, b := heatStops[at], heatStops[at+1]
		colors[i] = color.NRGBA{between(a.R, b.R), between(a.G, b.G), between(a.B, b.B), 0xff}
	}
	return colors
}

// unknownLevel is the level of an unknown cell.
const unknownLevel = -1

// level is the index of a relative value's color: 1 ↦ the middle.
func (h *heat) level(v float64) int {
	if !known(v) {
		return unknownLevel
	}
	return int(math.Round((h.scale.at(v) + 1) / 2 * (heatLevels - 1)))
}

// DataRange implements plot.DataRanger: cell i covers i − ½ to i + ½.
func (h *heat) DataRange() (xmin, xmax, ymin, ymax float64) {
	return -0.5, float64(len(h.cells[0])) - 0.5, -0.5, float64(len(h.cells)) - 0.5
}

// Plot implements plot.Plotter.
func (h *heat) Plot(c draw.Canvas, _ *plot.Plot) {
	c.DrawImage(c.Rectangle, h.image())
	c.SetLineStyle(line(softInk, 0.5))
	c.Stroke(c.Rectangle.Path())
}

// image is the cells in pixels, of unknown ones hatched: small in a file whatever their number.
func (h *heat) image() image.Image {
	wide, high := max(1, 1600/len(h.cells[0])), max(1, 800/len(h.cells))
	palette := append(slices.Clone(h.colors), paper, waitInk)
	img := image.NewPaletted(image.Rect(0, 0, wide*len(h.cells[0]), high*len(h.cells)), palette)
	for i, row := range h.cells {
		for j, v := range row {
			level := h.level(v)
			for at := range wide * high {
				x, y, index := j*wide+at%wide, i*high+at/wide, level
				if level == unknownLevel {
					index = heatLevels + map[bool]int{true: 1}[(x+y)%12 < 3]
				}
				img.SetColorIndex(x, y, uint8(index))
			}
		}
	}
	return img
}

func heatLegend(of string, s scale, unknown bool) []key {
	colors := heatColors()
	least, most, middle := quantity.Decimals(1-s.span, 1), quantity.Decimals(1+s.span, 1), "the mean of its layer"
	if s.span == 1 {
		least, most = "0", "2"
	}
	if s.log {
		least, most, middle = "≤ 1/"+quantity.Plain(s.span), quantity.Plain(s.span), middle+" (log scale)"
	}
	keys := []key{{
		most + " × the mean " + of, colorBarWidth,
		func(c draw.Canvas, r vg.Rectangle) {
			low := textStyle(textSize, ink)
			low.YAlign = draw.YCenter
			c.FillText(low, vg.Point{X: r.Min.X, Y: (r.Min.Y+r.Max.Y)/2 + textRise}, least)
			r.Min.X += low.Width(least) + sampleGap
			w := (r.Max.X - r.Min.X) / vg.Length(len(colors))
			for i, col := range colors {
				left := r.Min.X + vg.Length(i)*w
				fillBox(c, col, box(left, r.Min.Y, min(left+w+0.2, r.Max.X), r.Max.Y))
			}
		},
	}, {"middle: " + middle, 0, func(draw.Canvas, vg.Rectangle) {}}}
	if unknown {
		keys = append(keys, key{"nothing recorded", swatchWidth, func(c draw.Canvas, r vg.Rectangle) {
			hatchBox(c, paper, waitInk, r)
		}})
	}
	return keys
}

// Grid is a table of values that are not negative, such as nanoseconds or slots
// by layer and expert. NaN means that nothing is known about a cell, which is
// not zero.
type Grid struct {
	Name    string      // of the panel: the arm
	Rows    []int       // the number of each row, such as layers 3, 4, 5
	Columns []int       // the number of each column, such as experts 0…255
	Values  [][]float64 // [row][column]
}

// RelativeToRow divides every value by the mean of its row's known values, so
// that 1 is an even share whatever the layer. A row whose known values are all
// zero has no even share and becomes unknown.
func (g Grid) RelativeToRow() [][]float64 {
	out := make([][]float64, len(g.Values))
	for i, row := range g.Values {
		even := mean(row)
		out[i] = make([]float64, len(row))
		for j, v := range row {
			out[i][j] = nan
			if known(v) && even > 0 {
				out[i][j] = v / even
			}
		}
	}
	return out
}

// empty reports a grid without any known value.
func (g Grid) empty() bool { return len(knowns(slices.Concat(g.Values...))) == 0 }
