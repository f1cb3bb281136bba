package plots

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
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
	g, tokens := &curve{crossover: nan, threshold: s.Threshold}, &curve{crossover: nan, threshold: nan}
	ticks := valueNames{}
	low, high, most := 0.0, max(0, s.Threshold), 0.0
	for _, p := range s.Points {
		if !(p.Value > 0) || !known(p.Gain.Estimate.Float64()) {
			continue
		}
		at := math.Log(p.Value)
		ticks = append(ticks, plot.Tick{Value: at, Label: quantity.Plain(p.Value)})
		g.add(at, 100*p.Gain.Estimate.Float64(), 100*p.Gain.Low.Float64(), 100*p.Gain.High.Float64())
		for _, v := range []float64{p.Gain.Estimate.Float64(), p.Gain.Low.Float64(), p.Gain.High.Float64()} {
			if known(v) {
				low, high = min(low, v), max(high, v)
			}
		}
		if t := p.TokensPerExpert.Float64(); known(t) {
			tokens.add(at, t, nan, nan)
			most = max(most, t)
		}
	}
	if len(g.at) == 0 {
		return Figure{}, fmt.Errorf("gain curve %q: %w: want at least one point with a gain", s.Name, ErrNothing)
	}
	if s.Crossover != nil && s.Crossover.Value.Defined() {
		g.crossover = math.Log(s.Crossover.Value.Float64())
		f.legend = []key{lineKey("crossover at "+quantity.Digits3(s.Crossover.Value), line(softInk, 1.4, 2, 2))}
	}
	name, pad := s.Points[0].Name, max(0.01, (high-low)*0.08)
	panels := []*plot.Plot{newPanel("", name, "throughput gain")}
	panels[0].Y.Min, panels[0].Y.Max = 100*(low-pad), 100*(high+pad)
	panels[0].Y.Tick.Marker = valueTicks{6, " %"}
	panels[0].Add(rules{}, g)
	if len(tokens.at) == len(g.at) {
		p := newPanel("", name, "tokens per active expert, balanced")
		p.Y.Min, p.Y.Max = 0, headroom(most)
		p.Y.Tick.Marker = valueTicks{6, ""}
		p.Add(rules{}, tokens)
		panels = append(panels, p)
	}
	for _, p := range panels {
		first, last := ticks[0].Value, ticks[len(ticks)-1].Value
		p.X.Min, p.X.Max, p.X.Tick.Marker = first-max(0.1, (last-first)*0.05), last+max(0.1, (last-first)*0.05), ticks
	}
	f.arrange(panels, false, 250)
	f.legend = append(g.legend(), f.legend...)
	return f, nil
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
		s.add(a.MaxOverMean.Float64(), 100*a.Time)
		s.low, s.high = append(s.low, 100*a.Low.Float64()), append(s.high, 100*a.High.Float64())
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

// legend has what Plot draws.
func (g *curve) legend() []key {
	keys := []key{glyphKey("estimate", pairGlyph)}
	whole := func(v []float64) bool { return !slices.ContainsFunc(v, func(v float64) bool { return !known(v) }) }
	switch bounded := whole(g.low) && whole(g.high); {
	case bounded && g.joined():
		keys = append(keys, fillKey("simultaneous interval", tint(blue, 0.22)))
	case len(knowns(g.low)) > 0 && len(knowns(g.high)) > 0:
		keys = append(keys, lineKey("simultaneous interval", line(blue, 1.2)))
	}
	if known(g.threshold) {
		keys = append(keys, lineKey("threshold "+quantity.Confidence(g.threshold), thresholdLine))
	}
	return keys
}

func (g *curve) joined() bool { return len(g.at) >= curvePoints && known(g.threshold) }

// valueNames are the ticks of an axis with a label at each point.
type valueNames []plot.Tick

// Ticks implements plot.Ticker.
func (v valueNames) Ticks(_, _ float64) []plot.Tick { return v }

type curve struct {
	at, estimate, low, high []float64
	crossover, threshold    float64 // of the x and the y axis, NaN for none
}

func (g *curve) add(at, estimate, low, high float64) {
	g.at, g.estimate, g.low, g.high = append(g.at, at), append(g.estimate, estimate), append(g.low, low),
		append(g.high, high)
}

// Plot implements plot.Plotter.
func (g *curve) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var upper, lower, middle []vg.Point
	for i, at := range g.at {
		middle = append(middle, vg.Point{X: x(at), Y: y(g.estimate[i])})
		if known(g.low[i]) && known(g.high[i]) {
			upper, lower = append(upper, vg.Point{X: x(at), Y: y(g.high[i])}),
				append(lower, vg.Point{X: x(at), Y: y(g.low[i])})
		}
	}
	if g.joined() && len(upper) == len(middle) {
		band := append([]vg.Point{}, upper...)
		for i := len(lower) - 1; i >= 0; i-- {
			band = append(band, lower[i])
		}
		c.FillPolygon(tint(blue, 0.22), band)
	}
	if known(g.threshold) {
		acrossLine(c, line(softInk, 0.8), y(0))
		acrossLine(c, thresholdLine, y(100*g.threshold))
	}
	if known(g.crossover) {
		c.StrokeLine2(line(softInk, 1.4, 2, 2), x(g.crossover), c.Min.Y, x(g.crossover), c.Max.Y)
	}
	if g.joined() {
		c.StrokeLines(line(blue, 1.6), middle)
	}
	for i := range upper {
		c.StrokeLine2(line(blue, 1.2), upper[i].X, lower[i].Y, upper[i].X, upper[i].Y)
	}
	for _, at := range middle {
		c.DrawGlyphNoClip(pairGlyph, at)
	}
}
