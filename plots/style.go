package plots

import (
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/moebalance/moebalance/router/quantity"
)

// The sizes every figure shares, in points. At 100 % on a page a point is 1.33
// pixels, so the smallest text is 12 pixels high.
const (
	figureWidth   = 600 * vg.Length(1)
	margin        = 12 * vg.Length(1)
	titleSize     = 13
	titleHeight   = 24 * vg.Length(1)
	textSize      = 10
	tickSize      = 9
	legendGap     = 14 * vg.Length(1)
	swatchWidth   = 18 * vg.Length(1)
	colorBarWidth = 150 * vg.Length(1)
	chartHeight   = 250 * vg.Length(1)
)

// The colors are by Okabe and Ito, "Color Universal Design" (2008), which stay
// apart under the common color deficiencies, and three more. Each has one meaning over a
// whole page: blue is the balanced router, gray is waiting, the others are phases. Color
// never carries a meaning alone: arms also differ in place, glyph or dash.
var (
	ink     = color.NRGBA{0x1f, 0x24, 0x2b, 0xff}
	softInk = color.NRGBA{0x57, 0x60, 0x6a, 0xff}
	gridInk = color.NRGBA{0xe3, 0xe6, 0xea, 0xff}
	waitInk = color.NRGBA{0x8a, 0x93, 0x9c, 0xff}
	paper   = color.NRGBA{0xff, 0xff, 0xff, 0xff}
	blue    = color.NRGBA{0x00, 0x72, 0xb2, 0xff}
	skyBlue = color.NRGBA{0x56, 0xb4, 0xe9, 0xff}
	green   = color.NRGBA{0x00, 0x9e, 0x73, 0xff}
	orange  = color.NRGBA{0xe6, 0x9f, 0x00, 0xff}
	purple  = color.NRGBA{0xcc, 0x79, 0xa7, 0xff}
	brown   = color.NRGBA{0x8c, 0x6d, 0x46, 0xff}
	// indigo stays apart from orange also on the dark ground of an inverted figure, where vermilion is like it.
	indigo = color.NRGBA{0x33, 0x22, 0x88, 0xff}
)

// tint lets the ground show through: share 1 is c itself, 0 nothing of it.
func tint(c color.NRGBA, share float64) color.NRGBA {
	return color.NRGBA{c.R, c.G, c.B, uint8(255*share + 0.5)}
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

// key is one entry of a legend: a sample of the mark and what it means.
type key struct {
	label  string
	width  vg.Length // of the sample
	sample func(c draw.Canvas, r vg.Rectangle)
}

func fillKey(label string, col color.Color) key {
	return key{label, swatchWidth, func(c draw.Canvas, r vg.Rectangle) { fillBox(c, col, r) }}
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
	return at, row + 1
}

func legendHeight(keys []key) vg.Length {
	_, rows := flow(keys)
	return vg.Length(rows)*legendRow + 6
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

// textRise lifts centered text so that the middle of its small letters, and not
// of its line, is level with the sample.
const textRise = 2 * vg.Length(1)

// labels writes numbers: 3, 4 → "3", "4".
func labels(numbers []int) []string {
	names := make([]string, len(numbers))
	for i, n := range numbers {
		names[i] = strconv.Itoa(n)
	}
	return names
}

// indexTicks labels positions 0…len(names)−1 with their names, thinned to a power of two so
// that at most `most` labels are written and none overlap.
type indexTicks struct {
	names []string
	most  int
}

// Ticks implements plot.Ticker.
func (t indexTicks) Ticks(_, _ float64) []plot.Tick {
	step := 1
	for (len(t.names)+step-1)/step > t.most {
		step *= 2
	}
	var out []plot.Tick
	for i := 0; i < len(t.names); i += step {
		out = append(out, plot.Tick{Value: float64(i), Label: t.names[i]})
	}
	return out
}

// valueTicks are multiples of 1, 2 or 5 times a power of ten, about six of them, with a suffix
// such as " %" on their labels.
type valueTicks struct{ suffix string }

// Ticks implements plot.Ticker.
func (v valueTicks) Ticks(low, high float64) (out []plot.Tick) {
	power := math.Pow(10, math.Floor(math.Log10(max(high-low, 0.1)/6)))
	step := power
	for _, m := range []float64{2, 5, 10} {
		if (high-low)/step > 6.01 {
			step = m * power
		}
	}
	for i := math.Ceil(low/step - 1e-9); i*step <= high+1e-9*step && len(out) < 20; i++ {
		label := strconv.FormatFloat(i*step+0, 'g', 6, 64) // + 0 turns −0 into 0
		out = append(out, plot.Tick{Value: i * step, Label: strings.Replace(label, "-", "−", 1) + v.suffix})
	}
	return out
}

// nan is the unknown value.
var nan = math.NaN()

func known(v float64) bool { return quantity.Known(v) }

// knowns are the finite values.
func knowns(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return !known(v) })
}
