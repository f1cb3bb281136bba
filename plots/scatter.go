package plots

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/moebalance/moebalance/compare/nsys/perstep"
	"github.com/moebalance/moebalance/router/quantity"
)

// ScatterSpec is time against load: one point per rank and layer, one cloud per
// arm. Observed times only: an allocated time follows load by construction and
// proves nothing.
type ScatterSpec struct {
	Name, Title, Caption string
	LoadLabel, TimeLabel string // without units: slots and the time unit are added
	Clouds               []Cloud
}

// Cloud is the points of one arm, with their line.
type Cloud struct {
	Name string
	perstep.Points
}

// Scatter draws the clouds with their lines, both axes from zero so that the
// eye judges proportion and not just slope. Points with an unknown coordinate
// are left out; without any other the error wraps ErrNothing.
func Scatter(s ScatterSpec) (Figure, error) {
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption, height: 270}
	mostX, mostY, points := 0.0, 0.0, 0
	for i, cloud := range s.Clouds {
		for j := range cloud.Slots {
			if drawable(cloud.Slots[j]) && drawable(cloud.TimeNS[j]) {
				mostX, mostY = max(mostX, cloud.Slots[j]), max(mostY, cloud.TimeNS[j])
				points++
			}
		}
		f.legend = append(f.legend, glyphKey(cloud.Name, cloud.glyph(i)))
		if hasLine(cloud.Fit) {
			f.legend = append(f.legend, lineKey(fmt.Sprintf("%s: r² %.2f", cloud.Name, cloud.Fit.R2), cloud.line(i)))
		}
	}
	if points == 0 {
		return Figure{}, fmt.Errorf("scatter %q: %w: want at least one point with a load and a time", s.Name,
			ErrNothing)
	}
	unit := quantity.TimeUnit(mostY)
	p := newPanel("", s.LoadLabel+" (slots)", s.TimeLabel+" ("+unit.Name+")")
	p.X.Tick.Marker, p.Y.Tick.Marker = valueTicks{8, ""}, valueTicks{6, ""}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, headroom(mostX), 0, headroom(mostY/unit.Per)
	p.Add(rules{}, &scatter{s.Clouds, unit.Per})
	f.panels = [][]*plot.Plot{{p}}
	return f, nil
}

// glyph differs by shape as well as by color.
func (c Cloud) glyph(i int) draw.GlyphStyle {
	shapes := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}, draw.CrossGlyph{}}
	return draw.GlyphStyle{Color: armColor(c.Name, i), Radius: 3, Shape: shapes[i%4]}
}

func (c Cloud) line(i int) draw.LineStyle {
	if i == 0 {
		return line(shade(armColor(c.Name, i)), 1.2)
	}
	return line(shade(armColor(c.Name, i)), 1.2, 5, 3)
}

type scatter struct {
	clouds []Cloud
	per    float64
}

// Plot implements plot.Plotter.
func (s *scatter) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i, cloud := range s.clouds {
		low, high := math.Inf(1), math.Inf(-1)
		drawn := map[vg.Point]bool{} // to the half point: what lies under another point is not drawn
		for j, slots := range cloud.Slots {
			if !drawable(slots) || !drawable(cloud.TimeNS[j]) {
				continue
			}
			low, high = min(low, slots), max(high, slots)
			at := vg.Point{X: x(slots), Y: y(cloud.TimeNS[j] / s.per)}
			spot := vg.Point{X: vg.Length(math.Round(2 * at.X.Points())), Y: vg.Length(math.Round(2 * at.Y.Points()))}
			if !drawn[spot] {
				drawn[spot] = true
				c.DrawGlyphNoClip(cloud.glyph(i), at)
			}
		}
		fit := func(at float64) vg.Length { return y((cloud.Fit.InterceptNS + cloud.Fit.SlopeNS*at) / s.per) }
		if hasLine(cloud.Fit) {
			ends := []vg.Point{{X: x(low), Y: fit(low)}, {X: x(high), Y: fit(high)}}
			c.StrokeLines(cloud.line(i), c.ClipLinesXY(ends)...)
		}
	}
}

// TimeAgainstLoad sets observed time per step against recorded load per recorded
// step. Where experts have kernels of their own there is one point per layer and
// expert; otherwise, as with grouped kernels, one per layer and rank. Allocated times
// are left out: they follow load by construction. The finer points are used when
// every arm with loads has them.
func TimeAgainstLoad(arms ...Arm) ScatterSpec {
	s := ScatterSpec{Name: "time-load"}
	byExpert := !slices.ContainsFunc(arms, func(a Arm) bool { return !a.PerStep.ObservedByExpert() })
	part := "rank"
	if byExpert {
		part = "expert"
	}
	s.LoadLabel = "load of one " + part + " in a layer, per step"
	s.TimeLabel = "time of its expert kernels " + per(arms)
	s.Caption = fmt.Sprintf(
		"%s. One point per layer and %s: observed kernel time against recorded slots, each the mean over its steps. Lines "+
			"are least squares.", timedExtent(arms), part)
	var found findings
	for _, a := range arms {
		c := Cloud{a.Name, a.PerStep.TimeAgainstLoad(byExpert)}
		s.Clouds = append(s.Clouds, c)
		if len(c.Slots) > 0 {
			found.add(c.Name, c.answer())
		}
	}
	s.Title = found.of("time against load")
	return s
}

// answer says in words what the line shows, or why there is none.
func (c Cloud) answer() string {
	if !hasLine(c.Fit) {
		return "too few distinct points to fit a line"
	}
	cost := fmt.Sprintf("%s per slot on top of %s", quantity.Duration(c.Fit.SlopeNS),
		quantity.Duration(c.Fit.InterceptNS))
	if c.Windows {
		cost = "the time per slot is unknown, because each recorded step adds up an unknown number of passes"
	}
	return fmt.Sprintf("%s, and load explains %s of its variance", cost, quantity.Percent(c.Fit.R2))
}

func hasLine(f perstep.Fit) bool { return known(f.R2) }
