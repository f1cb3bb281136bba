package plots

import (
	"html"
	"math"
	"regexp"
	"strconv"
	"testing"
)

// Every text of every figure asks for the width that its words have in the face
// it was laid out with, whatever face the reader's machine puts in its place.
func TestSVGTextKeepsItsWidth(t *testing.T) {
	texts := regexp.MustCompile(
		`<text textLength="([^"]*)" lengthAdjust="spacingAndGlyphs" [^>]*?(font-weight="bold"[^>]*)?font-size="(\d+)px"[^>]*>([^<]*)</text>`)
	starts := regexp.MustCompile(`<text `)
	for _, f := range gallery(t, 4, 3, 32, 5) {
		svg := f.Inline()
		found := texts.FindAllStringSubmatch(svg, -1)
		if want := len(starts.FindAllString(svg, -1)); len(found) != want || want == 0 {
			t.Fatalf("%s: %d of %d texts have a width", f.Name, len(found), want)
		}
		for _, m := range found {
			size, _ := strconv.ParseFloat(m[3], 64)
			style := textStyle(size, ink)
			if m[2] != "" {
				style = boldStyle(size, ink)
			}
			words := html.UnescapeString(m[4])
			got, err := strconv.ParseFloat(m[1], 64)
			if want := style.Width(words).Points(); err != nil || math.Abs(got-want) > 1e-3*want {
				t.Errorf("%s: %q is asked to be %s wide, want %g", f.Name, words, m[1], want)
			}
		}
	}
}
