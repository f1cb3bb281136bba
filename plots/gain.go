package plots

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Gains draws what a campaign measured: a point for each pair of launches, for each launch that holds both
// arms, or for each block of the only launch, around the estimate in its interval; or the gain at each of several
// loads. The threshold is dashed. Of an unfinished campaign, which has launches left, the title says so. Without a
// gain the figure is empty.
func Gains(r gain.Result, left int) Figure {
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
	var chart gains
	if len(r.Points) > 0 {
		f.Title = "At which load does balance gain?"
		f.Caption += " The intervals hold together at " + quantity.Confidence(r.SimultaneousConfidence) + "."
		chart.loads(r.Points)
	} else {
		chart.units(unit, units, r.Gain)
	}
	if left > 0 { // the figure may be shown without its page
		f.Title = fmt.Sprintf("No verdict: unfinished, %s left", quantity.Count(left, "launch"))
	}
	if len(chart.points.XYs) > 0 {
		chart.draw(&f, r.Threshold)
	}
	return f
}

// gains is a chart of gains in percent: points, the line through estimates, and the band of their intervals.
type gains struct {
	x            string
	points, line marks
	ticks        plot.Ticker
	first, last  float64 // of the x axis
	legend       []key
}

// loads are the gains at several loads, on a logarithmic axis. Two are no curve.
func (g *gains) loads(points []gain.Comparison) {
	var ticks plot.ConstantTicks
	for _, p := range points {
		if p.Value > 0 && p.Gain.Estimate.Defined() {
			at := math.Log(p.Value)
			g.points.add(at, 100*p.Gain.Estimate, 100*p.Gain.Low, 100*p.Gain.High)
			ticks = append(ticks, plot.Tick{Value: at, Label: quantity.Plain(p.Value)})
			g.first, g.last = ticks[0].Value-0.1, at+0.1
		}
	}
	if g.x, g.ticks = points[0].Name, ticks; len(ticks) > 2 {
		g.line = g.points
	}
	g.legend = []key{glyphKey("estimate", disc(ink)), lineKey("interval", line(blue, 1.2))}
}

// units are the gains of units in the order run, before the estimate of all.
func (g *gains) units(unit string, units []gain.Unit, whole gain.Gain) {
	none, numbers := router.Undefined(), []int{}
	for _, p := range units {
		if p.Status == gain.PairComplete && p.Gain.Defined() {
			g.points.add(float64(len(numbers)), 100*p.Gain, none, none)
			numbers = append(numbers, p.Pair)
		}
	}
	g.x, g.ticks = unit+", in the order run", indexTicks{labels(numbers), 24}
	g.first, g.last = -0.5, float64(len(numbers))-0.5
	g.legend = []key{glyphKey("one "+unit, disc(ink)),
		lineKey("estimate "+quantity.Change(whole.Estimate), line(blue, 1.6))}
	for _, end := range []float64{g.first, g.last} {
		g.line.add(end, 100*whole.Estimate, 100*whole.Low, 100*whole.High)
	}
	if whole.Low.Defined() && whole.High.Defined() {
		g.legend = append(g.legend, fillKey(fmt.Sprintf("%s interval, %s to %s", quantity.Confidence(whole.Confidence),
			quantity.Change(whole.Low), quantity.Change(whole.High)), intervalFill))
	}
}

// draw draws the chart with zero and the threshold as lines, on a scale that holds both and the values.
func (g *gains) draw(f *Figure, threshold float64) {
	p := newPanel("", g.x, "throughput gain")
	p.Add(rules(), g.line.band(intervalFill), g.line.line(line(blue, 1.6)))
	p.Add(g.points.points(disc(ink), blue)...)
	p.Add(across(0, line(softInk, 0.8)))
	p.X.Min, p.X.Max, p.X.Tick.Marker = g.first, g.last, g.ticks
	p.Y.Min, p.Y.Max = padded(append(slices.Concat(g.points.ends(), g.line.ends()), 100*threshold)...)
	p.Y.Tick.Marker = valueTicks{" %"}
	if f.panels, f.legend = [][]*plot.Plot{{p}}, g.legend; threshold > 0 { // zero has a line of its own
		p.Add(across(100*threshold, thresholdLine))
		f.legend = append(g.legend, lineKey("threshold "+quantity.Confidence(threshold), thresholdLine))
	}
}

var thresholdLine, intervalFill = line(ink, 1.4, 6, 3), tint(blue, 0.22)
