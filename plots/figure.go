package plots

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"html"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/moebalance/moebalance/router/shown"
)

// ErrNothing is wrapped by every refusal to draw a figure without data.
var ErrNothing = errors.New("nothing to draw")

// pngDPI makes a PNG twice as fine as a page at 100 %.
const pngDPI = 192

// Figure is one drawing and the words around it. It is immutable.
type Figure struct {
	Name    string // file stem, such as "expert-time"
	Title   string // what the figure shows, in words, also for readers who do not see it
	Caption string // shape, basis, units: what a reader must know to trust it

	legend []key
	panels []*plot.Plot // of equal height, one below the other
	height vg.Length    // of all panels together
	width  vg.Length    // of the whole figure; 0 is figureWidth
}

// Mark begins the SVG files of this program.
const Mark = `<?xml version="1.0" encoding="UTF-8"?>` + "\n<!-- made by moebalance -->\n"

// SVG writes the figure as a stand-alone SVG document with its title, and its caption as description.
// Text stays text, in Liberation Sans or what the reader's machine has instead,
// stretched to the width it was laid out with.
func (f Figure) SVG(w io.Writer) error {
	_, err := io.WriteString(w, Mark+shown.Visible(f.svg(true)))
	return err
}

// Widths of drawings for other places than a whole page, in points.
const (
	BesideText = 490 // two thirds of a page
	Phone      = 290
)

// Inline is the figure as an <svg> element for a page that shows the title and the
// caption itself: no XML declaration, no fixed size (its aspect comes from the view
// box), and a name and description for screen readers. A width of 0 is a whole page.
func (f Figure) Inline(width float64) string {
	f.width = vg.Length(width)
	return f.svg(false)
}

// PNG writes the figure with its title at 192 dots per inch.
func (f Figure) PNG(w io.Writer) error {
	width, height := f.size(true)
	c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(pngDPI), vgimg.UseBackgroundColor(paper))
	f.draw(draw.New(c), true)
	var b bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: c}).WriteTo(&b); err != nil {
		return err
	}
	at := 33 // behind the signature and the header
	_, err := w.Write(slices.Concat(b.Bytes()[:at], madeBy, b.Bytes()[at:]))
	return err
}

// madeBy is the chunk of a PNG that names the program that made it.
var madeBy = func() []byte {
	const kind, text = "tEXt", "Software\x00moebalance"
	chunk := append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), kind+text...)
	return binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE([]byte(kind+text)))
}()

func (f Figure) svg(alone bool) string {
	width, height := f.size(alone)
	c := &svgCanvas{Canvas: vgsvg.New(width, height)}
	d := draw.New(c)
	if alone {
		fillBox(d, paper, d.Rectangle)
	}
	f.draw(d, alone)
	head := fmt.Sprintf(`<svg viewBox="0 0 %g %g" role="img"`, width.Points(), height.Points())
	if alone {
		head += fmt.Sprintf(` width="%gpt" height="%gpt" xmlns="http://www.w3.org/2000/svg"`, width.Points(),
			height.Points())
	}
	return fmt.Sprintf("%s>\n<title>%s</title>\n<desc>%s</desc>%s", head, html.EscapeString(f.Title),
		html.EscapeString(f.Caption), c.body(!alone))
}

// size is the size of the whole figure, with room for its title if that is drawn.
func (f Figure) size(titled bool) (w, h vg.Length) {
	w = cmp.Or(f.width, figureWidth)
	h = f.height + legendHeight(f.legend, w) + 2*margin
	if titled {
		h += titleHeight
	}
	return w, h
}

func (f Figure) draw(c draw.Canvas, titled bool) {
	c = draw.Crop(c, margin, -margin, margin, -margin)
	if titled {
		c.FillText(boldStyle(titleSize, ink), vg.Point{X: c.Min.X, Y: c.Max.Y}, f.Title)
		c.Max.Y -= titleHeight
	}
	width, _ := f.size(false)
	drawLegend(c, f.legend, width)
	c.Max.Y -= legendHeight(f.legend, width)
	column := make([][]*plot.Plot, len(f.panels))
	for i, p := range f.panels {
		fitted := *p
		if ticks, ok := p.X.Tick.Marker.(indexTicks); ok { // a narrow figure has room for fewer
			ticks.most = max(1, int(vg.Length(ticks.most)*width/figureWidth))
			fitted.X.Tick.Marker = ticks
		}
		column[i] = []*plot.Plot{&fitted}
	}
	for i, row := range plot.Align(column, draw.Tiles{Rows: len(column), Cols: 1, PadY: 10}, c) {
		column[i][0].Draw(row[0])
	}
}

// svgCanvas draws SVG that looks the same whatever fonts the reader has: it
// remembers the width each text was laid out with, and the body asks for it.
// Without that a wider face, such as the DejaVu Sans of many servers, runs one
// legend entry into the next.
type svgCanvas struct {
	*vgsvg.Canvas
	widths []vg.Length // of the texts, in the order drawn
}

// FillString draws a text and remembers its width.
func (c *svgCanvas) FillString(f font.Face, at vg.Point, s string) {
	c.widths = append(c.widths, f.Width(s))
	c.Canvas.FillString(f, at, s)
}

// rectangle is a path as box draws it: lines across, up, back and down. Heat maps hold
// thousands, which a page writes in half the letters.
var rectangle = regexp.MustCompile(`M([\d.-]+),([\d.-]+)L([\d.-]+),([\d.-]+)L([\d.-]+),([\d.-]+)L([\d.-]+),([\d.-]+)Z`)

// shortRectangle writes M1,2L3,2L3,4L1,4Z as M1,2h2v2h-2z, in tenths of a point, which are
// finer than a screen shows.
func shortRectangle(path string) string {
	m := rectangle.FindStringSubmatch(path)
	if m[2] != m[4] || m[3] != m[5] || m[6] != m[8] || m[1] != m[7] {
		return path
	}
	tenths := func(number string) float64 {
		v, _ := strconv.ParseFloat(number, 64) // of our own writing
		return math.Round(10 * v)
	}
	x, y, right, top := tenths(m[1]), tenths(m[2]), tenths(m[3]), tenths(m[6])
	return fmt.Sprintf("M%g,%gh%gv%gh%gz", x/10, y/10, (right-x)/10, (top-y)/10, (x-right)/10)
}

var styled = regexp.MustCompile(`\sstyle="([^"]*)"`)

// attributes are the properties of a style attribute, each as an attribute of its own: a page
// allows no style attributes.
func attributes(style string) string {
	var list []string
	for property := range strings.SplitSeq(styled.FindStringSubmatch(style)[1], ";") {
		if name, value, ok := strings.Cut(property, ":"); ok {
			list = append(list, fmt.Sprintf(`%s="%s"`, strings.TrimSpace(name), strings.TrimSpace(value)))
		}
	}
	return " " + strings.Join(list, " ")
}

// fallback stands in for Liberation Sans: first faces of its metrics.
const fallback = "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"

// plainFont is what a page's own style says of texts.
const plainFont = ` font-family="'Liberation Sans',Arial,Helvetica,sans-serif" font-variant="normal" ` +
	`font-weight="normal" font-style="normal"`

// body is the drawing without the <svg> element's own start tag, up to and with its end tag.
func (c *svgCanvas) body(onPage bool) string {
	var drawn bytes.Buffer
	_, _ = c.WriteTo(&drawn) // a bytes.Buffer takes everything
	_, body, _ := strings.Cut(drawn.String(), "xlink\">")
	body = strings.NewReplacer("font-family:Liberation Sans;", fallback, "\t", " ").Replace(body)
	if onPage {
		body = styled.ReplaceAllStringFunc(body, attributes)
		body = rectangle.ReplaceAllStringFunc(body, shortRectangle)
		body = strings.ReplaceAll(body, plainFont, "")
	}
	var b strings.Builder
	for i, part := range strings.SplitAfter(body, "<text ") {
		if i > 0 {
			fmt.Fprintf(&b, `textLength="%.5g" lengthAdjust="spacingAndGlyphs" `, c.widths[i-1].Points())
		}
		b.WriteString(part)
	}
	return b.String()
}
