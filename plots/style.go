package plots

import (
	"image/color"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The sizes every figure shares, in points. At 100 % on a page a point is 1.33
// pixels, so the smallest text is 12 pixels high.
const (
	figureWidth   = 700 * vg.Length(1)
	margin        = 12 * vg.Length(1)
	titleSize     = 13
	textSize      = 10
	tickSize      = 9
	legendGap     = 14 * vg.Length(1)
	swatchWidth   = 18 * vg.Length(1)
	colorBarWidth = 150 * vg.Length(1)
)

// The colours are those of Okabe and Ito, "Color Universal Design" (2008),
// which stay apart under the common colour deficiencies. Colour never carries a
// meaning alone: arms also differ in place, glyph or dash.
var (
	ink        = color.NRGBA{0x1f, 0x24, 0x2b, 0xff}
	softInk    = color.NRGBA{0x57, 0x60, 0x6a, 0xff}
	gridInk    = color.NRGBA{0xe3, 0xe6, 0xea, 0xff}
	waitInk    = color.NRGBA{0x8a, 0x93, 0x9c, 0xff}
	paper      = color.NRGBA{0xff, 0xff, 0xff, 0xff}
	vermillion = color.NRGBA{0xd5, 0x5e, 0x00, 0xff}
	blue       = color.NRGBA{0x00, 0x72, 0xb2, 0xff}
	skyBlue    = color.NRGBA{0x56, 0xb4, 0xe9, 0xff}
	green      = color.NRGBA{0x00, 0x9e, 0x73, 0xff}
	orange     = color.NRGBA{0xe6, 0x9f, 0x00, 0xff}
	yellow     = color.NRGBA{0xf0, 0xe4, 0x42, 0xff}
	purple     = color.NRGBA{0xcc, 0x79, 0xa7, 0xff}
)

// seriesColor is the colour of the i-th arm or series; from the eighth on they
// repeat.
func seriesColor(i int) color.NRGBA {
	colors := []color.NRGBA{vermillion, blue, green, purple, orange, skyBlue, ink}
	return colors[i%len(colors)]
}

// tint is c mixed with white: share 1 is c itself, 0 is white.
func tint(c color.NRGBA, share float64) color.NRGBA {
	mix := func(x uint8) uint8 { return uint8(255 - share*float64(255-x) + 0.5) }
	return color.NRGBA{mix(c.R), mix(c.G), mix(c.B), 0xff}
}

// textStyle is the sans-serif face of figures at a size in points.
func textStyle(size float64, c color.Color) text.Style {
	return text.Style{
		Color:   c,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Length(size)},
		XAlign:  draw.XLeft,
		YAlign:  draw.YTop,
		Handler: plot.DefaultTextHandler,
	}
}

func boldStyle(size float64, c color.Color) text.Style {
	s := textStyle(size, c)
	s.Font.Weight = stdfont.WeightBold
	return s
}

// newPanel is an empty plot in the house style.
func newPanel(title, x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.Title.Text = title
	p.Title.TextStyle = boldStyle(textSize, ink)
	p.Title.TextStyle.XAlign = draw.XCenter
	p.Title.Padding = 4
	for _, axis := range []struct {
		*plot.Axis
		label string
	}{{&p.X, x}, {&p.Y, y}} {
		axis.Label.Text = axis.label
		axis.Label.TextStyle.Font = textStyle(textSize, ink).Font
		axis.Label.TextStyle.Color = ink
		axis.Label.Padding = 3
		axis.Tick.Label.Font = textStyle(tickSize, ink).Font
		axis.Tick.Label.Color = ink
		axis.Tick.LineStyle = line(softInk, 0.5)
		axis.Tick.Length = 4
		axis.LineStyle = line(softInk, 0.5)
		axis.Padding = 0
	}
	return p
}

func line(c color.Color, width float64, dashes ...float64) draw.LineStyle {
	s := draw.LineStyle{Color: c, Width: vg.Length(width)}
	for _, d := range dashes {
		s.Dashes = append(s.Dashes, vg.Length(d))
	}
	return s
}

// box is the rectangle between two corners.
func box(x0, y0, x1, y1 vg.Length) vg.Rectangle {
	return vg.Rectangle{Min: vg.Point{X: x0, Y: y0}, Max: vg.Point{X: x1, Y: y1}}
}

func fillBox(c draw.Canvas, col color.Color, r vg.Rectangle) {
	c.SetColor(col)
	c.Fill(r.Path())
}

// hatchBox fills r with diagonal lines: the sign of "unknown" and of waiting.
func hatchBox(c draw.Canvas, ground, lines color.Color, r vg.Rectangle) {
	const step = 4
	fillBox(c, ground, r)
	w, h := r.Max.X-r.Min.X, r.Max.Y-r.Min.Y
	var path vg.Path
	// The line x − y = d through the box, for every d that meets it.
	for d := -h + step/2; d < w; d += step {
		from := vg.Point{X: r.Min.X + max(d, 0), Y: r.Min.Y + max(-d, 0)}
		to := vg.Point{X: r.Min.X + min(w, d+h), Y: r.Min.Y + min(h, w-d)}
		path.Move(from)
		path.Line(to)
	}
	c.SetLineStyle(line(lines, 0.6))
	c.Stroke(path)
}
