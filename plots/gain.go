package plots

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
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
	f, none := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption, height: chartHeight}, router.Undefined()
	var pairs, whole marks
	var numbers []int
	for _, p := range s.Pairs {
		if p.Status == gain.PairComplete && p.Gain.Defined() {
			pairs.add(float64(len(numbers)), 100*p.Gain, none, none)
			numbers = append(numbers, p.Pair)
		}
	}
	if len(numbers) == 0 {
		return Figure{}, fmt.Errorf("paired gain %q: %w: want at least one pair", s.Name, ErrNothing)
	}
	p, last := newPanel("", s.Unit+", in the order run", "throughput gain"), float64(len(numbers))-0.5
	for _, end := range []float64{-0.5, last} {
		whole.add(end, 100*s.Gain.Estimate, 100*s.Gain.Low, 100*s.Gain.High)
	}
	f.legend = []key{glyphKey("one "+s.Unit, disc(ink))}
	p.Add(rules())
	if s.Gain.Estimate.Defined() {
		p.Add(whole.band(intervalFill), whole.line(line(blue, 1.6)))
		f.legend = append(f.legend, lineKey("estimate "+quantity.Change(s.Gain.Estimate), line(blue, 1.6)))
	}
	if s.Gain.Low.Defined() && s.Gain.High.Defined() {
		f.legend = append(f.legend, fillKey(fmt.Sprintf("%s interval, %s to %s", quantity.Confidence(s.Gain.Confidence),
			quantity.Change(s.Gain.Low), quantity.Change(s.Gain.High)), intervalFill))
	}
	p.Add(pairs.points(disc(ink), ink)...)
	f.threshold(p, s.Threshold, pairs.ends(), whole.ends())
	p.X.Min, p.X.Max, p.X.Tick.Marker = -0.5, last, indexTicks{labels(numbers), 24}
	return f, nil
}

// threshold completes a chart of gains in percent: zero and the threshold as lines, and a scale that holds
// both and the values.
func (f *Figure) threshold(p *plot.Plot, threshold float64, values ...[]float64) {
	p.Add(across(0, line(softInk, 0.8)), across(100*threshold, thresholdLine))
	p.Y.Min, p.Y.Max = padded(append(slices.Concat(values...), 100*threshold)...)
	p.Y.Tick.Marker = valueTicks{" %"}
	f.panels, f.legend = []*plot.Plot{p}, append(f.legend, lineKey("threshold "+quantity.Confidence(threshold), thresholdLine))
}

var thresholdLine, intervalFill = line(ink, 1.4, 6, 3), tint(blue, 0.22)
