package plots

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"

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
	g := &series{style: line(blue, 0)}
	ticks := valueNames{}
	for _, p := range s.Points {
		if !(p.Value > 0) || !known(p.Gain.Estimate.Float64()) {
			continue
		}
		at := math.Log(p.Value)
		ticks = append(ticks, plot.Tick{Value: at, Label: quantity.Plain(p.Value)})
		g.bounded(at, 100*p.Gain.Estimate, 100*p.Gain.Low, 100*p.Gain.High)
	}
	if len(g.at) == 0 {
		return Figure{}, fmt.Errorf("gain curve %q: %w: want at least one point with a gain", s.Name, ErrNothing)
	}
	p := newPanel("", s.Points[0].Name, "throughput gain")
	first, last := ticks[0].Value, ticks[len(ticks)-1].Value
	pad := max(0.1, (last-first)*0.05)
	p.X.Min, p.X.Max, p.X.Tick.Marker = first-pad, last+pad, ticks
	p.Y.Min, p.Y.Max = padded(append(slices.Concat(g.y, g.low, g.high), 100*s.Threshold)...)
	p.Y.Tick.Marker = valueTicks{" %"}
	p.Add(rules{})
	interval := lineKey("simultaneous interval", line(blue, 1.2))
	if len(g.at) >= curvePoints {
		g.style.Width, interval = 1.6, fillKey("simultaneous interval", intervalFill)
		p.Add(band{g.at, g.low, g.high, intervalFill})
	}
	estimates := &series{at: g.at, y: g.y, style: line(ink, 0), glyph: draw.CircleGlyph{}, radius: pairRadius}
	p.Add(across{0, line(softInk, 0.8)}, across{100 * s.Threshold, thresholdLine}, g, estimates)
	f.legend = append(f.legend, glyphKey("estimate", estimates.point()))
	if len(knowns(slices.Concat(g.low, g.high))) > 0 {
		f.legend = append(f.legend, interval)
	}
	f.legend = append(f.legend, lineKey("threshold "+quantity.Confidence(s.Threshold), thresholdLine))
	if s.Crossover != nil && s.Crossover.Value.Defined() {
		at := &uprights{[]float64{math.Log(s.Crossover.Value.Float64())}, line(softInk, 1.4, 2, 2)}
		p.Add(at)
		f.legend = append(f.legend, lineKey("crossover at "+quantity.Digits3(s.Crossover.Value), at.style))
	}
	f.panels = []*plot.Plot{p}
	return f, nil
}

// DoseResponse draws how long a step takes, over that of balanced routing, by the load imbalance
// of the router: a point with its interval for each arm, and a line through the arms whose
// imbalance was set. Without two such points the error wraps ErrNothing.
func DoseResponse(d *gain.Dose, title string) (Figure, error) {
	f := Figure{Name: "dose", Title: title, height: chartHeight, Caption: quantity.Count(d.N, "launch") +
		"; bars are " + quantity.Confidence(d.Confidence) + " intervals."}
	set, learned := &series{style: line(blue, 1.6), glyph: draw.CircleGlyph{}, radius: pairRadius},
		&series{style: line(vermillion, 0), glyph: draw.RingGlyph{}, radius: pairRadius}
	for _, a := range d.Arms {
		s := learned
		if a.Fitted {
			s = set
		}
		if (a.MaxOverMean + a.Time + a.Low + a.High).Defined() {
			s.bounded(a.MaxOverMean.Float64(), 100*a.Time, 100*a.Low, 100*a.High)
		}
	}
	if len(set.at) < 2 {
		return f, fmt.Errorf("dose: %w: want at least two arms of known load", ErrNothing)
	}
	at, all := append(slices.Clone(set.at), learned.at...), slices.Concat(set.low, set.high, learned.low, learned.high)
	pad, room := max(1, (slices.Max(all)-slices.Min(all))*0.08), 0.05*(slices.Max(at)-slices.Min(at))
	p := newPanel("", "load imbalance (max/mean over ranks)", "time, balanced = 100 %")
	p.X.Min, p.X.Max, p.X.Tick.Marker = slices.Min(at)-room, slices.Max(at)+room, valueTicks{""}
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = slices.Min(all)-pad, slices.Max(all)+pad, valueTicks{" %"}
	p.Add(rules{}, set, learned)
	f.panels, f.legend = []*plot.Plot{p}, []key{glyphKey("router with this imbalance", set.point())}
	if len(learned.at) > 0 {
		f.legend = append(f.legend, glyphKey("learned router", learned.point()))
	}
	return f, nil
}

// valueNames are the ticks of an axis with a label at each point.
type valueNames []plot.Tick

// Ticks implements plot.Ticker.
func (v valueNames) Ticks(_, _ float64) []plot.Tick { return v }
