package plots

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/plot"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Gains draws what a campaign measured: a point for each pair of launches, for each launch that holds both
// arms, or for each block of the only launch; or the gain at each of several loads. Of an unfinished campaign,
// which has launches left, the title says so. Without a gain the error wraps ErrNothing.
func Gains(r gain.Result, left int) (Figure, error) {
	unit, measured := "pair", quantity.Count(r.Gain.N, "complete pair")+" of launches"
	units := slices.DeleteFunc(r.Units(), func(u gain.Unit) bool { return u.Arm != "" })
	switch {
	case len(r.Launches) == 0:
	case len(units) == 1: // its blocks alone show its noise
		unit, measured = "block", "one launch, with a widened interval"
		blocks := units[0].Blocks
		units = nil
		for i, b := range blocks {
			units = append(units, gain.Unit{Pair: i, Values: b.Values})
		}
	default:
		unit, measured = "launch", quantity.Count(r.Gain.N, "launch")+", both arms in each"
	}
	metric := fmt.Sprintf("%s (%s)", r.Metric.Name, r.Metric.Unit)
	if r.Metric.Definition != "" { // how it is computed
		metric += ": " + strings.TrimPrefix(r.Metric.Definition, r.Metric.Name+"/")
	}
	f := Figure{Name: "gain", Title: fmt.Sprintf("What did each %s gain?", unit), height: chartHeight,
		Caption: fmt.Sprintf("Gain of %s over %s; %s; %s.", r.Called(gain.Perfect).Label(), r.Called(gain.Normal).Label(),
			measured, metric)}
	if len(r.Points) > 0 {
		f.Title = "At which load does balance gain?"
		f.Caption += " The intervals hold together at " + quantity.Confidence(r.SimultaneousConfidence) + "."
	}
	if left > 0 { // the figure may be shown without its page
		f.Title = fmt.Sprintf("No verdict: unfinished, %s left", quantity.Count(left, "launch"))
	}
	if len(r.Points) > 0 {
		return f.curve(r)
	}
	return f.pairs(unit, units, r)
}

// pairs draws one point per unit, the estimate as a line, its interval as a band, the threshold dashed and
// zero as a thin line.
func (f Figure) pairs(unit string, list []gain.Unit, r gain.Result) (Figure, error) {
	none := router.Undefined()
	var pairs, whole marks
	var numbers []int
	for _, p := range list {
		if p.Status == gain.PairComplete && p.Gain.Defined() {
			pairs.add(float64(len(numbers)), 100*p.Gain, none, none)
			numbers = append(numbers, p.Pair)
		}
	}
	if len(numbers) == 0 {
		return Figure{}, fmt.Errorf("gains: %w: want at least one %s with a gain", ErrNothing, unit)
	}
	p, last := newPanel("", unit+", in the order run", "throughput gain"), float64(len(numbers))-0.5
	for _, end := range []float64{-0.5, last} {
		whole.add(end, 100*r.Gain.Estimate, 100*r.Gain.Low, 100*r.Gain.High)
	}
	f.legend = []key{glyphKey("one "+unit, disc(ink))}
	p.Add(rules())
	if r.Gain.Estimate.Defined() {
		p.Add(whole.band(intervalFill), whole.line(line(blue, 1.6)))
		f.legend = append(f.legend, lineKey("estimate "+quantity.Change(r.Gain.Estimate), line(blue, 1.6)))
	}
	if r.Gain.Low.Defined() && r.Gain.High.Defined() {
		f.legend = append(f.legend, fillKey(fmt.Sprintf("%s interval, %s to %s", quantity.Confidence(r.Gain.Confidence),
			quantity.Change(r.Gain.Low), quantity.Change(r.Gain.High)), intervalFill))
	}
	p.Add(pairs.points(disc(ink), ink)...)
	f.threshold(p, r.Threshold, pairs.ends(), whole.ends())
	p.X.Min, p.X.Max, p.X.Tick.Marker = -0.5, last, indexTicks{labels(numbers), 24}
	return f, nil
}

// threshold completes a chart of gains in percent: zero and the threshold as lines, and a scale that holds
// both and the values.
func (f *Figure) threshold(p *plot.Plot, threshold float64, values ...[]float64) {
	p.Add(across(0, line(softInk, 0.8)), across(100*threshold, thresholdLine))
	p.Y.Min, p.Y.Max = padded(append(slices.Concat(values...), 100*threshold)...)
	p.Y.Tick.Marker = valueTicks{" %"}
	f.panels, f.legend = []*plot.Plot{p}, append(f.legend, lineKey("threshold "+quantity.Confidence(threshold),
		thresholdLine))
}

var thresholdLine, intervalFill = line(ink, 1.4, 6, 3), tint(blue, 0.22)
