package plots

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/quantity"
)

// CurveSpec is the gain at several loads, ascending.
type CurveSpec struct {
	Name, Title, Caption string
	Points               []gain.PointGain
	Crossover            *gain.Crossover // nil for none
	Threshold            float64
}

// curvePoints is how many points are joined: two are no curve.
const curvePoints = 3

// GainCurve draws gain against load, which has a logarithmic axis: the estimates with
// their intervals, from three points on as a line in a band, the threshold dashed and the
// crossover as an upright line. Without a gain the error wraps ErrNothing.
func GainCurve(s CurveSpec) (Figure, error) {
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption, height: chartHeight}
	var gains marks
	ticks := valueNames{}
	for _, p := range s.Points {
		if p.Value > 0 && p.Gain.Estimate.Defined() {
			gains.add(math.Log(p.Value), 100*p.Gain.Estimate, 100*p.Gain.Low, 100*p.Gain.High)
			ticks = append(ticks, plot.Tick{Value: math.Log(p.Value), Label: quantity.Plain(p.Value)})
		}
	}
	if len(ticks) == 0 {
		return Figure{}, fmt.Errorf("gain curve %q: %w: want at least one point with a gain", s.Name, ErrNothing)
	}
	p := newPanel("", s.Points[0].Name, "throughput gain")
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
	f.threshold(p, s.Threshold, gains.ends())
	if s.Crossover != nil && s.Crossover.Value.Defined() {
		at, dotted := math.Log(s.Crossover.Value.Float64()), line(softInk, 1.4, 2, 2)
		p.Add(&plotter.Line{XYs: plotter.XYs{{X: at, Y: p.Y.Min}, {X: at, Y: p.Y.Max}}, LineStyle: dotted})
		f.legend = append(f.legend, lineKey("crossover at "+quantity.Digits3(s.Crossover.Value), dotted))
	}
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
