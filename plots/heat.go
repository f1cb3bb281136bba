package plots

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// HeatSpec is the content of a heat map: grids of the same rows and columns, one panel each,
// on one color scale.
type HeatSpec struct {
	Name, Title, Caption  string
	RowLabel, ColumnLabel string // axis labels, such as "layer" and "expert"
	Quantity              string // what is divided by its mean: "time" or "load"
	Rows, Columns         []int  // their numbers, such as layers 3, 4, 5 and experts 0…255
	Grids                 []Grid
}

// Grid holds values that are not negative, such as nanoseconds or slots by layer and expert. NaN
// means that nothing is known about a cell, which is not zero.
type Grid struct {
	Name   string      // of the panel: the arm
	Values [][]float64 // [row][column]
}

// heatLevels is the number of colors of the scale. An odd number has one in
// the middle, which is the mean's.
const heatLevels = 41

// HeatMap draws every cell relative to the mean of its row, on a diverging scale whose neutral middle
// is the mean. The scale is logarithmic, so that 12 × differs from 3 ×, and reaches as far as the data, but at
// least to 1.1 × the mean, so that balance is a plain field and its noise not stretched. Unknown cells are
// hatched. Without a known cell in any grid the figure is empty.
//
// The scale is blue below and brown above a neutral mean, and darker the larger the value, so
// that it reads in gray and with the common color deficiencies, and without the colors of the arms.
func HeatMap(s HeatSpec) Figure {
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption}
	unknown, span := false, s.span()
	height := vg.Length(min(max(18*len(s.Rows), 40), max(220, 5*len(s.Rows)))) // few rows are seen, many are read
	for _, g := range s.Grids {
		h := &heat{g.relativeToRow(), span}
		known := len(knowns(slices.Concat(h.cells...)))
		if known == 0 {
			continue
		}
		unknown = unknown || known < len(s.Rows)*len(s.Columns)
		p := newPanel(panelTitle(g.Name, len(s.Grids)), s.ColumnLabel, s.RowLabel)
		p.X.Tick.Marker = indexTicks{labels(s.Columns), 17}
		p.Y.Tick.Marker = indexTicks{labels(s.Rows), max(1, int(height/13))}
		p.Y.Scale = plot.InvertedScale{Normalizer: plot.LinearScale{}} // layer 0 on top
		p.Add(h)
		f.panels = append(f.panels, []*plot.Plot{p})
		f.height += height + 52
	}
	f.legend = heatLegend(s.Quantity, span, unknown)
	return f
}

// span is the factor that the colors reach from the mean to both sides: a round one that holds the largest cell.
func (h HeatSpec) span() float64 {
	most := 1.0
	for _, g := range h.Grids {
		for _, v := range knowns(slices.Concat(g.relativeToRow()...)) {
			most = max(most, v)
		}
	}
	for _, round := range []float64{1.1, 1.2, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128} {
		if most <= round*1.005 {
			return round
		}
	}
	return 256
}

// heat draws the cells of one grid, already relative to the mean.
type heat struct {
	cells [][]float64
	span  float64
}

// heatStops are colors of the scale at even distances, upwards and ever darker.
var heatStops = []color.NRGBA{{0xee, 0xf5, 0xff, 0xff}, {0xc9, 0xdd, 0xf6, 0xff}, {0xc3, 0xc3, 0xc3, 0xff},
	{0xd9, 0x83, 0x36, 0xff}, {0x5e, 0x22, 0x06, 0xff}}

// heatColors are the colors of the scale, upwards.
var heatColors = func() color.Palette {
	colors := make(color.Palette, heatLevels)
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
}()

// level is the index of a relative value's color: 1 ↦ the middle.
func (h *heat) level(v float64) int {
	along := math.Log(v) / math.Log(h.span)
	return int(math.Round((min(max(along, -1), 1) + 1) / 2 * (heatLevels - 1)))
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
	palette := append(slices.Clone(heatColors), paper, waitInk)
	img := image.NewPaletted(image.Rect(0, 0, wide*len(h.cells[0]), high*len(h.cells)), palette)
	for i, row := range h.cells {
		for j, v := range row {
			for at := range wide * high {
				x, y, index := j*wide+at%wide, i*high+at/wide, heatLevels
				switch {
				case known(v):
					index = h.level(v)
				case (x+y)%12 < 3:
					index++
				}
				img.SetColorIndex(x, y, uint8(index))
			}
		}
	}
	return img
}

func heatLegend(of string, span float64, unknown bool) []key {
	keys := []key{{fmt.Sprintf("%g × the mean %s", span, of), colorBarWidth, func(c draw.Canvas, r vg.Rectangle) {
		low, least := textStyle(textSize, ink), fmt.Sprintf("≤ 1/%g", span)
		low.YAlign = draw.YCenter
		c.FillText(low, vg.Point{X: r.Min.X, Y: (r.Min.Y+r.Max.Y)/2 + textRise}, least)
		r.Min.X += low.Width(least) + sampleGap
		w := (r.Max.X - r.Min.X) / heatLevels
		for i, col := range heatColors {
			left := r.Min.X + vg.Length(i)*w
			fillBox(c, col, box(left, r.Min.Y, min(left+w+0.2, r.Max.X), r.Max.Y))
		}
	}}, {"middle: the mean of its layer (log scale)", 0, func(draw.Canvas, vg.Rectangle) {}}}
	if unknown {
		keys = append(keys, key{"nothing recorded", swatchWidth, func(c draw.Canvas, r vg.Rectangle) {
			hatchBox(c, paper, waitInk, r)
		}})
	}
	return keys
}

// relativeToRow divides every value by the mean of its row's known values, so
// that 1 is an even share whatever the layer. A row whose known values are all
// zero has no even share and becomes unknown.
func (g Grid) relativeToRow() [][]float64 {
	out := make([][]float64, len(g.Values))
	for i, row := range g.Values {
		even := stat.Mean(knowns(row), nil)
		for _, v := range row {
			if !known(v) || !(even > 0) {
				v = nan
			}
			out[i] = append(out[i], v/even)
		}
	}
	return out
}
