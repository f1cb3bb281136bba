package plots

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/quantity"
)

// GainSpec is a gain as it was measured: the gain of each complete pair of launches, or of
// each launch that holds both arms, and what was estimated from them. All values are
// fractions: 0.1 is a gain of 10 %.
type GainSpec struct {
	Name, Title, Caption string
	Unit                 string      // what a point is: a pair, a launch or a block
	Pairs                []gain.Pair // in the order run
	Gain                 gain.Gain
	Threshold            float64 // the gain at which imbalance counts as significant
}

// PairedGain draws one point per pair, the estimate as a line, its interval as a band, the
// threshold dashed and zero as a thin line. Without a single pair the error wraps ErrNothing.
func PairedGain(s GainSpec) (Figure, error) {
	estimate, low, high := 100*s.Gain.Estimate.Float64(), 100*s.Gain.Low.Float64(), 100*s.Gain.High.Float64()
	pairs := &series{style: line(ink, 0), glyph: draw.CircleGlyph{}, radius: pairRadius}
	var numbers []int
	for _, p := range s.Pairs {
		if p.Status == gain.PairComplete && p.Gain.Defined() {
			pairs.add(float64(len(numbers)), 100*p.Gain)
			numbers = append(numbers, p.Pair)
		}
	}
	if len(numbers) == 0 {
		return Figure{}, fmt.Errorf("paired gain %q: %w: want at least one pair", s.Name, ErrNothing)
	}
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption, height: chartHeight}
	p := newPanel("", s.Unit+", in the order run", "throughput gain")
	p.X.Tick.Marker = indexTicks{labels(numbers), 24}
	p.Y.Tick.Marker = valueTicks{" %"}
	p.Y.Min, p.Y.Max = padded(append(pairs.y, low, high, estimate, 100*s.Threshold)...)
	ends := []float64{-0.5, float64(len(numbers)) - 0.5}
	p.Add(rules{}, places(len(numbers)), band{ends, []float64{low, low}, []float64{high, high}, intervalFill},
		across{0, line(softInk, 0.8)}, across{100 * s.Threshold, thresholdLine}, across{estimate, line(blue, 1.6)}, pairs)
	f.panels = []*plot.Plot{p}
	f.legend = []key{glyphKey("one "+s.Unit, pairs.point())}
	if known(estimate) {
		f.legend = append(f.legend, lineKey("estimate "+quantity.Change(s.Gain.Estimate), line(blue, 1.6)))
	}
	if known(low) && known(high) {
		label := fmt.Sprintf("%s interval, %s to %s", quantity.Confidence(s.Gain.Confidence), quantity.Change(s.Gain.Low),
			quantity.Change(s.Gain.High))
		f.legend = append(f.legend, fillKey(label, intervalFill))
	}
	f.legend = append(f.legend, lineKey("threshold "+quantity.Confidence(s.Threshold), thresholdLine))
	return f, nil
}

// pairRadius is the radius of the points of launches.
const pairRadius = 3.5

var thresholdLine, intervalFill = line(ink, 1.4, 6, 3), tint(blue, 0.22)
