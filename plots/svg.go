package plots

import (
	"bytes"
	"fmt"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"
)

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

// fallback is what stands in for Liberation Sans: first faces of its metrics.
const fallback = "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"

// body is the drawing without the <svg> element's own start tag, up to and with
// its end tag.
func (c *svgCanvas) body() string {
	var drawn bytes.Buffer
	_, _ = c.WriteTo(&drawn) // a bytes.Buffer takes everything
	_, body, _ := strings.Cut(drawn.String(), "xlink\">")
	body = strings.ReplaceAll(body, "font-family:Liberation Sans;", fallback)
	var b strings.Builder
	for i, part := range strings.SplitAfter(body, "<text ") {
		if i > 0 {
			fmt.Fprintf(&b, `textLength="%.5g" lengthAdjust="spacingAndGlyphs" `, c.widths[i-1].Points())
		}
		b.WriteString(part)
	}
	return b.String()
}
