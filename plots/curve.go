package plots

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/quantity"
)

// curvePoints is how many points are joined: two are no curve.
const curvePoints = 3

// curve draws gain against load, which has a logarithmic axis: the estimates with
// their intervals, from three points on as a line in a band, and the threshold dashed.
func (f Figure) curve(r gain.Result) (Figure, error) {
	var gains marks
	ticks := valueNames{}
	for _, p := range r.Points {
		if p.Value > 0 && p.Gain.Estimate.Defined() {
			gains.add(math.Log(p.Value), 100*p.Gain.Estimate, 100*p.Gain.Low, 100*p.Gain.High)
			ticks = append(ticks, plot.Tick{Value: math.Log(p.Value), Label: quantity.Plain(p.Value)})
		}
	}
	if len(ticks) == 0 {
		return Figure{}, fmt.Errorf("gains: %w: want at least one point with a gain", ErrNothing)
	}
	p := newPanel("", r.Points[0].Name, "throughput gain")
	p.Add(rules())
	f.legend = []key{glyphKey("estimate", disc(ink))}
	interval := lineKey("simultaneous interval", line(blue, 1.2))
	if len(ticks) >= curvePoints {
		interval = fillKey("simultaneous interval", intervalFill)
		p.Add(gains.band(intervalFill), gains.line(line(blue, 1.6)))
	}
	if gains.bounded() {
		f.legend = append(f.legend, interval)
	}
	p.Add(gains.points(disc(ink), blue)...)
	f.threshold(p, r.Threshold, gains.ends())
	first, last := ticks[0].Value, ticks[len(ticks)-1].Value
	pad := max(0.1, (last-first)*0.05)
	p.X.Min, p.X.Max, p.X.Tick.Marker = first-pad, last+pad, ticks
	return f, nil
}

// DoseResponse draws how long a step takes, over a step with balanced routing, by the load imbalance
// of the router: a point with its interval for each arm, and a line through the arms whose
// imbalance was set. Without two such points the error wraps ErrNothing.
func DoseResponse(d *gain.Dose, title string) (Figure, error) {
	f := Figure{Name: "dose", Title: title, height: chartHeight, Caption: quantity.Count(d.N, "launch") +
		"; bars are " + quantity.Confidence(d.Confidence) + " intervals."}
	var set, learned marks
	for _, a := range d.Arms {
		m := &learned
		if a.Fitted {
			m = &set
		}
		if a.MaxOverMean.Defined() && a.Low.Defined() && a.High.Defined() {
			m.add(a.MaxOverMean.Float64(), 100*a.Time, 100*a.Low, 100*a.High)
		}
	}
	if len(set.XYs) < 2 {
		return f, fmt.Errorf("dose: %w: want at least two arms of known load", ErrNothing)
	}
	p := newPanel("", "load imbalance (max/mean over ranks)", "time, balanced = 100 %")
	p.Add(rules(), set.line(line(blue, 1.6)))
	p.Add(slices.Concat(set.points(disc(blue), blue), learned.points(ring(vermillion), vermillion))...)
	all, room := slices.Concat(set.ends(), learned.ends()), 0.05*(p.X.Max-p.X.Min)
	pad := max(1, (slices.Max(all)-slices.Min(all))*0.08)
	p.X.Min, p.X.Max, p.X.Tick.Marker = p.X.Min-room, p.X.Max+room, valueTicks{""}
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = slices.Min(all)-pad, slices.Max(all)+pad, valueTicks{" %"}
	f.panels, f.legend = []*plot.Plot{p}, []key{glyphKey("router with this imbalance", disc(blue))}
	if len(learned.XYs) > 0 {
		f.legend = append(f.legend, glyphKey("learned router", ring(vermillion)))
	}
	return f, nil
}

// valueNames are the ticks of an axis with a label at each point.
type valueNames []plot.Tick

// Ticks implements plot.Ticker.
func (v valueNames) Ticks(_, _ float64) []plot.Tick { return v }
