package plots

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
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
// crossover as an upright line. Where the tokens per active expert are known, they stand
// beside it. Without a gain the error wraps ErrNothing.
func GainCurve(s CurveSpec) (Figure, error) {
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption}
	g := &series{style: line(blue, 0)}
	tokens := &series{style: line(ink, 0), glyph: draw.CircleGlyph{}, radius: pairRadius}
	ticks := valueNames{}
	for _, p := range s.Points {
		if !(p.Value > 0) || !known(p.Gain.Estimate.Float64()) {
			continue
		}
		at := math.Log(p.Value)
		ticks = append(ticks, plot.Tick{Value: at, Label: quantity.Plain(p.Value)})
		g.bounded(at, 100*p.Gain.Estimate.Float64(), 100*p.Gain.Low.Float64(), 100*p.Gain.High.Float64())
		tokens.add(at, p.TokensPerExpert)
	}
	if len(g.at) == 0 {
		return Figure{}, fmt.Errorf("gain curve %q: %w: want at least one point with a gain", s.Name, ErrNothing)
	}
	name := s.Points[0].Name
	panels := []*plot.Plot{newPanel("", name, "throughput gain")}
	panels[0].Y.Min, panels[0].Y.Max = padded(append(slices.Concat(g.y, g.low, g.high), 100*s.Threshold)...)
	panels[0].Y.Tick.Marker = valueTicks{6, " %"}
	panels[0].Add(rules{})
	if len(g.at) >= curvePoints {
		g.style.Width = 1.6
		panels[0].Add(band{g.at, g.low, g.high, tint(blue, 0.22)})
	}
	estimates := &series{at: g.at, y: g.y, style: line(ink, 0), glyph: draw.CircleGlyph{}, radius: pairRadius}
	panels[0].Add(across{0, line(softInk, 0.8)}, across{100 * s.Threshold, thresholdLine}, g, estimates)
	f.legend = append(f.legend, glyphKey("estimate", estimates.point()))
	f.legend = append(f.legend, intervalKey(g)...)
	f.legend = append(f.legend, lineKey("threshold "+quantity.Confidence(s.Threshold), thresholdLine))
	if s.Crossover != nil && s.Crossover.Value.Defined() {
		at := &uprights{[]float64{math.Log(s.Crossover.Value.Float64())}, line(softInk, 1.4, 2, 2)}
		panels[0].Add(at)
		f.legend = append(f.legend, lineKey("crossover at "+quantity.Digits3(s.Crossover.Value), at.style))
	}
	if len(tokens.at) == len(g.at) {
		p := newPanel("", name, "tokens per active expert, balanced")
		p.Y.Min, p.Y.Max = 0, headroom(largest(tokens.y))
		p.Y.Tick.Marker = valueTicks{6, ""}
		p.Add(rules{}, tokens)
		panels = append(panels, p)
	}
	for _, p := range panels {
		first, last := ticks[0].Value, ticks[len(ticks)-1].Value
		p.X.Min, p.X.Max, p.X.Tick.Marker = first-max(0.1, (last-first)*0.05), last+max(0.1, (last-first)*0.05), ticks
	}
	f.arrange(panels, false, 250)
	return f, nil
}

// intervalKey is that of the intervals of points, which are a band where a line joins them.
func intervalKey(g *series) []key {
	bounds := knowns(slices.Concat(g.low, g.high))
	switch {
	case len(bounds) == 0:
		return nil
	case g.style.Width > 0 && len(bounds) == 2*len(g.at):
		return []key{fillKey("simultaneous interval", tint(blue, 0.22))}
	}
	return []key{lineKey("simultaneous interval", line(blue, 1.2))}
}

// DoseResponse draws how long a step takes, over that of balanced routing, by the load imbalance
// of the router: a point with its interval for each arm, and the line through those whose imbalance
// was set, from each to the next where it is bent. Without two points the error wraps ErrNothing.
func DoseResponse(d *gain.Dose, title string) (Figure, error) {
	f := Figure{Name: "dose", height: 250}
	set, learned := &series{style: line(blue, 0), glyph: draw.CircleGlyph{}},
		&series{style: line(vermillion, 0), glyph: draw.RingGlyph{}}
	for _, a := range d.Arms {
		if !(a.MaxOverMean + a.Time + a.Low + a.High).Defined() {
			continue
		}
		s := learned
		if a.Fitted {
			s = set
		}
		s.bounded(a.MaxOverMean.Float64(), 100*a.Time.Float64(), 100*a.Low.Float64(), 100*a.High.Float64())
	}
	if len(set.at) < 2 || !d.Slope.Defined() {
		return f, fmt.Errorf("dose: %w: want two arms of known load", ErrNothing)
	}
	first, last := slices.Min(append(set.at, learned.at...)), slices.Max(append(set.at, learned.at...))
	trend, drawn := set.trend(100*d.Slope, first, last), "fitted line"
	if d.Bent {
		trend.at, trend.y, drawn = set.at, set.y, "straight between routers"
	}
	all := slices.Concat(set.low, set.high, learned.low, learned.high, trend.y)
	pad := max(1, (slices.Max(all)-slices.Min(all))*0.08)
	p := newPanel("", "load imbalance (max/mean over ranks)", "time, balanced = 100 %")
	p.X.Min, p.X.Max, p.X.Tick.Marker = first-0.05*(last-first), last+0.05*(last-first), valueTicks{6, ""}
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = slices.Min(all)-pad, slices.Max(all)+pad, valueTicks{6, " %"}
	p.Add(rules{}, trend, set)
	f.legend = []key{glyphKey("router with this imbalance", set.point()), lineKey(drawn, trend.style)}
	if len(learned.at) > 0 {
		p.Add(learned)
		f.legend = append(f.legend, glyphKey("learned router", learned.point()))
	}
	f.panels = [][]*plot.Plot{{p}}
	f.Title = title
	f.Caption = quantity.Count(d.N, "launch")
	if d.Low.Defined() {
		f.Caption += fmt.Sprintf("; bars are %s intervals", quantity.Confidence(d.Confidence))
	}
	if f.Caption += "."; len(learned.at) > 0 {
		f.Caption += " The line does not use the learned router."
	}
	return f, nil
}

// trend is the line of this slope through the mean of the points.
func (s *series) trend(slope router.Number, first, last float64) *series {
	t := &series{style: line(blue, 1.6)}
	for _, at := range []float64{first, last} {
		t.add(at, router.Number(mean(s.y))+slope*router.Number(at-mean(s.at)))
	}
	return t
}

// valueNames are the ticks of an axis with a label at each point.
type valueNames []plot.Tick

// Ticks implements plot.Ticker.
func (v valueNames) Ticks(_, _ float64) []plot.Tick { return v }
