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
// was set; at names the point of the campaign, if it has several. Without two points the error wraps
// ErrNothing.
func DoseResponse(d *gain.Dose, at string) (Figure, error) {
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
	trend := set.trend(100*d.Slope, first, last)
	all := slices.Concat(set.low, set.high, learned.low, learned.high, trend.y)
	pad := max(1, (slices.Max(all)-slices.Min(all))*0.08)
	p := newPanel("", "load imbalance (max/mean over ranks)", "time, balanced = 100 %")
	p.X.Min, p.X.Max, p.X.Tick.Marker = first-0.05*(last-first), last+0.05*(last-first), valueTicks{6, ""}
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = slices.Min(all)-pad, slices.Max(all)+pad, valueTicks{6, " %"}
	p.Add(rules{}, trend, set)
	f.legend = []key{glyphKey("router with this imbalance", set.point()), lineKey("fitted line", trend.style)}
	if len(learned.at) > 0 {
		p.Add(learned)
		f.legend = append(f.legend, glyphKey("learned router", learned.point()))
	}
	f.panels = [][]*plot.Plot{{p}}
	f.Title = "Each 10 % of load imbalance costs " + costOf(d) + at
	f.Caption = quantity.Count(d.N, "launch")
	if d.Low.Defined() {
		f.Caption += fmt.Sprintf("; bars are %s intervals", quantity.Confidence(d.Confidence))
	}
	if f.Caption += "."; len(learned.at) > 0 {
		f.Caption += " The learned router is not part of the fit."
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

// costOf is what a tenth of imbalance costs; one that may be a saving is given by its interval alone.
func costOf(d *gain.Dose) string {
	cost, low, high := d.Slope/10, d.Low/10, d.High/10
	switch {
	case !low.Defined():
		return "about " + quantity.Percent(cost) + " of time"
	case low > 0:
		return fmt.Sprintf("%s of time (%s to %s)", quantity.Percent(cost), quantity.Percent(low), quantity.Percent(high))
	}
	return fmt.Sprintf("between %s and %s of time", quantity.Change(low), quantity.Change(high))
}

// valueNames are the ticks of an axis with a label at each point.
type valueNames []plot.Tick

// Ticks implements plot.Ticker.
func (v valueNames) Ticks(_, _ float64) []plot.Tick { return v }

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
	estimate, low, high := 100*s.Gain.Estimate.Float64(), 100*s.Gain.Low.Float64(), 100*s.Gain.High.Float64()
	pairs := &series{style: line(ink, 0), glyph: draw.CircleGlyph{}, radius: pairRadius}
	var numbers []int
	for _, p := range s.Pairs {
		if p.Status == gain.PairComplete {
			pairs.at, pairs.y = append(pairs.at, float64(len(numbers))), append(pairs.y, 100*p.Gain.Float64())
			numbers = append(numbers, p.Pair)
		}
	}
	if len(knowns(pairs.y)) == 0 {
		return Figure{}, fmt.Errorf("paired gain %q: %w: want at least one pair", s.Name, ErrNothing)
	}
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption, height: 250}
	p := newPanel("", s.Unit+", in the order run", "throughput gain")
	p.X.Tick.Marker = indexTicks{numbers, 24}
	p.Y.Tick.Marker = valueTicks{6, " %"}
	p.Y.Min, p.Y.Max = padded(append(pairs.y, low, high, estimate, 100*s.Threshold)...)
	ends := []float64{-0.5, float64(len(numbers)) - 0.5}
	p.Add(rules{}, places(len(numbers)), band{ends, []float64{low, low}, []float64{high, high}, tint(blue, 0.22)},
		across{0, line(softInk, 0.8)}, across{100 * s.Threshold, thresholdLine}, across{estimate, line(blue, 1.6)}, pairs)
	f.panels = [][]*plot.Plot{{p}}
	f.legend = []key{glyphKey("one "+s.Unit, pairs.point())}
	if known(estimate) {
		f.legend = append(f.legend, lineKey("estimate "+quantity.Change(s.Gain.Estimate), line(blue, 1.6)))
	}
	if known(low) && known(high) {
		label := fmt.Sprintf("%s interval, %s to %s", quantity.Confidence(s.Gain.Confidence), quantity.Change(s.Gain.Low),
			quantity.Change(s.Gain.High))
		f.legend = append(f.legend, fillKey(label, tint(blue, 0.22)))
	}
	f.legend = append(f.legend, lineKey("threshold "+quantity.Confidence(s.Threshold), thresholdLine))
	return f, nil
}

// pairRadius is that of the points of launches.
const pairRadius = 3.5

var thresholdLine = line(ink, 1.4, 6, 3)
