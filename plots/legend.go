package plots

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// key is one entry of a legend: a sample of the mark and what it means.
type key struct {
	label  string
	width  vg.Length // of the sample
	sample func(c draw.Canvas, r vg.Rectangle)
}

func fillKey(label string, col color.Color) key {
	return key{label, swatchWidth, func(c draw.Canvas, r vg.Rectangle) { fillBox(c, col, r) }}
}

func hatchKey(label string, ground, lines color.Color) key {
	return key{label, swatchWidth, func(c draw.Canvas, r vg.Rectangle) { hatchBox(c, ground, lines, r) }}
}

func lineKey(label string, sty draw.LineStyle) key {
	return key{label, swatchWidth, func(c draw.Canvas, r vg.Rectangle) {
		y := (r.Min.Y + r.Max.Y) / 2
		c.StrokeLine2(sty, r.Min.X, y, r.Max.X, y)
	}}
}

func glyphKey(label string, sty draw.GlyphStyle) key {
	return key{label, sty.Radius * 2, func(c draw.Canvas, r vg.Rectangle) {
		c.DrawGlyphNoClip(sty, vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2})
	}}
}

const (
	legendRow    = 17 * vg.Length(1)
	sampleHeight = 9 * vg.Length(1)
	sampleGap    = 5 * vg.Length(1)
)

// flow lays the keys out in rows that fit the figure: where each key starts,
// and how many rows there are.
func flow(keys []key) (at []vg.Point, rows int) {
	sty := textStyle(textSize, ink)
	x, row := vg.Length(0), 0
	for _, k := range keys {
		w := k.width + sampleGap + sty.Width(k.label)
		if x > 0 && x+w > figureWidth-2*margin {
			x, row = 0, row+1
		}
		at = append(at, vg.Point{X: x, Y: -vg.Length(row) * legendRow})
		x += w + legendGap
	}
	if len(keys) == 0 {
		return nil, 0
	}
	return at, row + 1
}

func legendHeight(keys []key) vg.Length {
	if _, rows := flow(keys); rows > 0 {
		return vg.Length(rows)*legendRow + 6
	}
	return 0
}

func drawLegend(c draw.Canvas, keys []key) {
	sty := textStyle(textSize, ink)
	sty.YAlign = draw.YCenter
	at, _ := flow(keys)
	for i, k := range keys {
		x, y := c.Min.X+at[i].X, c.Max.Y+at[i].Y-legendRow/2
		k.sample(c, box(x, y-sampleHeight/2, x+k.width, y+sampleHeight/2))
		c.FillText(sty, vg.Point{X: x + k.width + sampleGap, Y: y + textRise}, k.label)
	}
}

// textRise lifts centred text so that the middle of its small letters, and not
// of its line, is level with the sample.
const textRise = 2 * vg.Length(1)

func textMiddle(r vg.Rectangle) vg.Length { return (r.Min.Y+r.Max.Y)/2 + textRise }
