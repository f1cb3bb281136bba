package plots

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"html"
	"io"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/moebalance/moebalance/router/shown"
)

// pngDPI makes a PNG twice as fine as a page at 100 %.
const pngDPI = 192

// Figure is one drawing and the words around it. It is immutable. Without data it is empty.
type Figure struct {
	Name    string // file stem, such as "expert-time"
	Title   string // what the figure shows, in words, also for readers who do not see it
	Caption string // shape, basis, units: what a reader must know to trust it

	legend []key
	panels [][]*plot.Plot // of equal height, one below the other, as plot.Align takes them
	height vg.Length      // of all panels together
}

// Empty reports a figure that has nothing to show.
func (f Figure) Empty() bool { return len(f.panels) == 0 }

// Mark begins the SVG files of this program.
const Mark = `<?xml version="1.0" encoding="UTF-8"?>` + "\n<!-- made by moebalance -->\n"

// SVG writes the figure as an SVG document with its title, and its caption as description.
// Text stays text, in Liberation Sans or what the reader's machine has instead,
// stretched to the width it was laid out with.
func (f Figure) SVG(w io.Writer) error { return f.svg(w, true) }

// WriteDrawing writes the figure as an SVG document for a page, which shows the title itself.
func (f Figure) WriteDrawing(w io.Writer) error { return f.svg(w, false) }

// PNG writes the figure with its title at 192 dots per inch.
func (f Figure) PNG(w io.Writer) error {
	width, height := f.size(true)
	c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(pngDPI), vgimg.UseBackgroundColor(paper))
	f.draw(draw.New(c), true)
	var b bytes.Buffer
	_, _ = vgimg.PngCanvas{Canvas: c}.WriteTo(&b) // a bytes.Buffer takes everything
	at := 33                                      // behind the signature and the header
	_, err := w.Write(slices.Concat(b.Bytes()[:at], madeBy, b.Bytes()[at:]))
	return err
}

// madeBy is the chunk of a PNG that names the program that made it.
var madeBy = func() []byte {
	const kind, text = "tEXt", "Software\x00moebalance"
	chunk := append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), kind+text...)
	return binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE([]byte(kind+text)))
}()

func (f Figure) svg(w io.Writer, titled bool) error {
	width, height := f.size(titled)
	c := &svgCanvas{Canvas: vgsvg.New(width, height)}
	d := draw.New(c)
	fillBox(d, paper, d.Rectangle)
	f.draw(d, titled)
	const head = `<svg viewBox="0 0 %[1]g %[2]g" role="img" width="%[1]gpt" height="%[2]gpt" ` +
		`xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">` +
		"\n<title>%[3]s</title>\n<desc>%[4]s</desc>%[5]s"
	_, err := io.WriteString(w, Mark+shown.Visible(fmt.Sprintf(head, width.Points(), height.Points(),
		html.EscapeString(f.Title), html.EscapeString(f.Caption), c.body())))
	return err
}

// size is the size of the whole figure, with room for its title if that is drawn.
func (f Figure) size(titled bool) (w, h vg.Length) {
	h = f.height + legendHeight(f.legend) + 2*margin
	if titled {
		h += titleHeight
	}
	return figureWidth, h
}

func (f Figure) draw(c draw.Canvas, titled bool) {
	c = draw.Crop(c, margin, -margin, margin, -margin)
	if titled {
		c.FillText(boldStyle(titleSize, ink), vg.Point{X: c.Min.X, Y: c.Max.Y}, f.Title)
		c.Max.Y -= titleHeight
	}
	drawLegend(c, f.legend)
	c.Max.Y -= legendHeight(f.legend)
	for i, row := range plot.Align(f.panels, draw.Tiles{Rows: len(f.panels), Cols: 1, PadY: 10}, c) {
		f.panels[i][0].Draw(row[0])
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

// fallback stands in for Liberation Sans: first faces of its metrics.
const fallback = "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"

// body is the drawing without the <svg> element's own start tag, up to and with its end tag.
func (c *svgCanvas) body() string {
	var drawn bytes.Buffer
	_, _ = c.WriteTo(&drawn) // a bytes.Buffer takes everything
	_, body, _ := strings.Cut(drawn.String(), "xlink\">")
	body = strings.NewReplacer("font-family:Liberation Sans;", fallback, "\t", " ", "<image ",
		`<image preserveAspectRatio="none" `).Replace(body)
	var b strings.Builder
	for i, part := range strings.SplitAfter(body, "<text ") {
		if i > 0 {
			fmt.Fprintf(&b, `textLength="%.5g" lengthAdjust="spacingAndGlyphs" `, c.widths[i-1].Points())
		}
		b.WriteString(part)
	}
	return b.String()
}
