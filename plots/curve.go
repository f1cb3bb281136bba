package plots

import (
	"fmt"
	"math"

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

// valueNames are the ticks of an axis with a label at each point.
type valueNames []plot.Tick

// Ticks implements plot.Ticker.
func (v valueNames) Ticks(_, _ float64) []plot.Tick { return v }
