package plots

import (
	"fmt"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/quantity"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// GainSpec is a paired gain: that of each complete pair of launches, and what was
// estimated from them. All values are fractions: 0.1 is a gain of 10 %.
type GainSpec struct {
	Name, Title, Caption string
	Unit                 string      // what a point is: a pair, a launch or a block
	Pairs                []gain.Pair // in the order run
	Gain                 gain.Gain
	Threshold            float64 // the gain at which imbalance counts as significant
}

// PairedGain draws one point per pair, the estimate as a line, its interval as
// a band, the threshold dashed and zero as a thin line. Without a single pair
// the error wraps ErrNothing.
func PairedGain(s GainSpec) (Figure, error) {
	g := &gains{estimate: s.Gain.Estimate.Float64(), low: s.Gain.Low.Float64(), high: s.Gain.High.Float64(),
		threshold: s.Threshold}
	var numbers []int
	for _, p := range s.Pairs {
		if p.Status == gain.PairComplete {
			numbers, g.pairs = append(numbers, p.Pair), append(g.pairs, p.Gain.Float64())
		}
	}
	if len(knowns(g.pairs)) == 0 {
		return Figure{}, fmt.Errorf("paired gain %q: %w: want at least one pair", s.Name, ErrNothing)
	}
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption, height: 250}
	low, high := 0.0, max(0, s.Threshold)
	for _, v := range append([]float64{g.low, g.high, g.estimate}, g.pairs...) {
		if known(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	pad := (high - low) * 0.08
	if pad == 0 {
		pad = 0.01
	}
	p := newPanel("", s.Unit+", in the order run", "throughput gain")
	p.X.Tick.Marker = indexTicks{numbers, 24}
	p.Y.Tick.Marker = valueTicks{6, " %"}
	p.Y.Min, p.Y.Max = 100*(low-pad), 100*(high+pad)
	g.places = places(len(g.pairs))
	p.Add(rules{}, g)
	f.panels = [][]*plot.Plot{{p}}
	f.legend = []key{glyphKey("one "+s.Unit, pairGlyph)}
	if known(g.estimate) {
		f.legend = append(f.legend, lineKey("estimate "+quantity.Change(g.estimate), line(blue, 1.6)))
	}
	if known(g.low) && known(g.high) {
		label := fmt.Sprintf("%s interval, %s to %s", quantity.Confidence(s.Gain.Confidence), quantity.Change(g.low),
			quantity.Change(g.high))
		f.legend = append(f.legend, fillKey(label, tint(blue, 0.22)))
	}
	f.legend = append(f.legend, lineKey("threshold "+quantity.Confidence(s.Threshold), thresholdLine))
	return f, nil
}

var (
	pairGlyph     = draw.GlyphStyle{Color: ink, Radius: 3.5, Shape: draw.CircleGlyph{}}
	thresholdLine = line(ink, 1.4, 6, 3)
)

type gains struct {
	places
	pairs                          []float64
	estimate, low, high, threshold float64
}

// Plot implements plot.Plotter.
func (g *gains) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	at := func(v float64) vg.Length { return y(100 * v) }
	if known(g.low) && known(g.high) {
		fillBox(c, tint(blue, 0.22), box(c.Min.X, at(g.low), c.Max.X, at(g.high)))
	}
	acrossLine(c, line(softInk, 0.8), at(0))
	acrossLine(c, thresholdLine, at(g.threshold))
	if known(g.estimate) {
		acrossLine(c, line(blue, 1.6), at(g.estimate))
	}
	for i, v := range g.pairs {
		if known(v) {
			c.DrawGlyphNoClip(pairGlyph, vg.Point{X: x(float64(i)), Y: at(v)})
		}
	}
}
