package plots

import (
	"fmt"

	"github.com/moebalance/moebalance/router/quantity"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// GainSpec is a paired gain: one value per pair of launches and what was
// estimated from them. All values are fractions: 0.1 is a gain of 10 %.
type GainSpec struct {
	Name, Title, Caption, Alt string
	Numbers                   []int     // of the pairs
	Pairs                     []float64 // the gain of each, in the order run; NaN for a pair without one
	Estimate, Low, High       float64   // NaN where undefined
	Confidence                float64   // of the interval, such as 0.95
	Threshold                 float64   // the gain at which imbalance counts as significant
}

// PairedGain draws one point per pair, the estimate as a line, its interval as
// a band, the threshold dashed and zero as a thin line. Without a single pair
// the error wraps ErrNothing.
func PairedGain(s GainSpec) (Figure, error) {
	if len(s.Numbers) != len(s.Pairs) {
		return Figure{}, fmt.Errorf("paired gain %q: want %d numbers of pairs, have %d", s.Title, len(s.Pairs), len(s.Numbers))
	}
	if len(knowns(s.Pairs)) == 0 {
		return Figure{}, fmt.Errorf("paired gain %q: %w: want at least one pair", s.Title, ErrNothing)
	}
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption, Alt: s.Alt, height: 250}
	low, high := 0.0, max(0, s.Threshold)
	for _, v := range append([]float64{s.Low, s.High, s.Estimate}, s.Pairs...) {
		if known(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	pad := (high - low) * 0.08
	if pad == 0 {
		pad = 0.01
	}
	p := newPanel("", "pair, in the order run", "throughput gain, perfect over normal")
	p.X.Tick.Marker = indexTicks{s.Numbers, 24}
	p.Y.Tick.Marker = valueTicks{6, " %"}
	p.Y.Min, p.Y.Max = 100*(low-pad), 100*(high+pad)
	p.Add(rules{}, &gain{places(len(s.Pairs)), s})
	f.panels = [][]*plot.Plot{{p}}
	f.legend = []key{glyphKey("one pair", pairGlyph)}
	if known(s.Estimate) {
		f.legend = append(f.legend, lineKey("Hodges–Lehmann estimate "+quantity.Change(s.Estimate), line(blue, 1.6)))
	}
	if known(s.Low) && known(s.High) {
		label := fmt.Sprintf("%s interval, %s to %s", quantity.Percent(s.Confidence), quantity.Change(s.Low), quantity.Change(s.High))
		f.legend = append(f.legend, fillKey(label, tint(blue, 0.22)))
	}
	f.legend = append(f.legend, lineKey("threshold "+quantity.Percent(s.Threshold), thresholdLine))
	return f, nil
}

var (
	pairGlyph     = draw.GlyphStyle{Color: ink, Radius: 3.5, Shape: draw.CircleGlyph{}}
	thresholdLine = line(vermillion, 1.4, 6, 3)
)

type gain struct {
	places
	GainSpec
}

// Plot implements plot.Plotter.
func (g *gain) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	at := func(v float64) vg.Length { return y(100 * v) }
	if known(g.Low) && known(g.High) {
		fillBox(c, tint(blue, 0.22), box(c.Min.X, at(g.Low), c.Max.X, at(g.High)))
	}
	acrossLine(c, line(softInk, 0.8), at(0))
	acrossLine(c, thresholdLine, at(g.Threshold))
	if known(g.Estimate) {
		acrossLine(c, line(blue, 1.6), at(g.Estimate))
	}
	for i, v := range g.Pairs {
		if known(v) {
			c.DrawGlyphNoClip(pairGlyph, vg.Point{X: x(float64(i)), Y: at(v)})
		}
	}
}
