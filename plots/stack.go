package plots

import (
	"cmp"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router/quantity"
)

// StackSpec is the time of every rank by phase, one panel per arm on one scale.
type StackSpec struct {
	Name, Title, Caption string
	Per                  string // "per step", or "in the capture" where steps are not marked
	Arms                 []Stack
}

// Stack is one arm: a bar for each rank.
type Stack struct {
	Name string
	Bars []Bar
}

// Bar is what a rank's time goes to, from the start of the bar on: phases, and what follows the work.
type Bar struct {
	Name  string
	parts []part
}

type part struct {
	of string
	ns float64
}

// What follows the work of a rank. Where the two parts of collectives cannot be told apart, they are one.
const (
	Transfer    = "transfer"
	Waiting     = "waiting in collectives"
	Collectives = "collectives, waiting included"
	NoKernel    = "no kernel"
)

// Add adds a part. One that cannot be drawn, as a broken file may hold, is left out.
func (b *Bar) Add(of string, ns float64) {
	if known(ns) && ns > 0 {
		b.parts = append(b.parts, part{of, ns})
	}
}

// partColors belong to the phases by name, so that a phase looks the same on every page.
var partColors = map[string]color.NRGBA{
	string(trace.PhaseExperts): orange, string(trace.PhaseAttention): purple, string(trace.PhaseRouter): indigo,
	string(trace.PhaseDispatch): tint(skyBlue, 0.55), string(trace.PhaseCombine): green, string(trace.PhaseOther): brown,
	string(trace.PhaseCommunication): softInk,
	Transfer:                         waitInk, Collectives: tint(waitInk, 0.4),
}

// partKey is how a part is drawn: waiting hatched, the time without a kernel outlined.
func partKey(of string) key {
	switch of {
	case Waiting:
		return key{of, swatchWidth, func(c draw.Canvas, r vg.Rectangle) {
			hatchBox(c, tint(waitInk, 0.15), softInk, r)
		}}
	case NoKernel:
		return key{of, swatchWidth, func(c draw.Canvas, r vg.Rectangle) {
			c.SetLineStyle(line(softInk, 0.7, 2, 2))
			c.Stroke(r.Path())
		}}
	}
	return fillKey(of, cmp.Or(partColors[of], tint(softInk, 0.4)))
}

// mostBars is the number of bars of a panel that get a name each.
const mostBars = 12

// PhaseStacks draws a bar for each rank: work by phase, transfer, wait and the time without a kernel. Without any
// time the figure is empty.
func PhaseStacks(s StackSpec) Figure {
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption}
	longest, most, widest := 0.0, 0, map[string]float64{}
	var found []string
	for _, a := range s.Arms {
		most = max(most, len(a.Bars))
		for _, bar := range a.Bars {
			sum := 0.0
			for _, p := range bar.parts {
				sum += p.ns
				if widest[p.of] == 0 {
					found = append(found, p.of)
				}
				widest[p.of] = max(widest[p.of], p.ns)
			}
			longest = max(longest, sum)
		}
	}
	if longest == 0 {
		return f
	}
	for _, of := range found {
		if widest[of] > 0.002*longest { // a thinner part is not seen
			f.legend = append(f.legend, partKey(of))
		}
	}
	unit := quantity.TimeUnit(longest)
	for _, a := range s.Arms {
		p := newPanel(panelTitle(a.Name, len(s.Arms)), "time "+s.Per+" ("+unit.Name+")", "")
		p.X.Min, p.X.Max = 0, 1.06*longest/unit.Per
		p.X.Tick.Marker = valueTicks{""}
		var names indexTicks
		for _, bar := range a.Bars {
			names.names = append(names.names, bar.Name)
		}
		names.most = mostBars
		p.Y.Tick.Marker = names
		p.Y.Scale = plot.InvertedScale{Normalizer: plot.LinearScale{}} // the first rank on top
		p.Add(&stack{a.Bars, unit.Per})
		f.panels = append(f.panels, []*plot.Plot{p})
		f.height += 44 + vg.Length(min(320, 28*most))
	}
	return f
}

type stack struct {
	bars []Bar
	per  float64
}

// DataRange implements plot.DataRanger: the panel sets x itself.
func (s *stack) DataRange() (xmin, xmax, ymin, ymax float64) {
	return math.Inf(1), math.Inf(-1), -0.5, float64(len(s.bars)) - 0.5
}

// Plot implements plot.Plotter.
func (s *stack) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i, bar := range s.bars {
		base, low, high := 0.0, y(float64(i)+0.33), y(float64(i)-0.33)
		for _, part := range bar.parts {
			r := box(x(base/s.per), low, x((base+part.ns)/s.per), high)
			if base > 0 { // parts stay apart in gray
				c.StrokeLine2(line(paper, 1.2), r.Min.X, low, r.Min.X, high)
			}
			partKey(part.of).sample(c, r)
			s.label(c, r, part.ns)
			base += part.ns
		}
	}
}

// label writes the value of a part into it, on paper, where there is room.
func (s *stack) label(c draw.Canvas, part vg.Rectangle, ns float64) {
	sty, text := textStyle(tickSize, ink), quantity.Digits3(ns/s.per)
	width := sty.Width(text) + 4
	if part.Max.X-part.Min.X < width+4 || part.Max.Y-part.Min.Y < 12 {
		return
	}
	at := vg.Point{X: (part.Min.X + part.Max.X) / 2, Y: (part.Min.Y + part.Max.Y) / 2}
	fillBox(c, tint(paper, 0.8), box(at.X-width/2, at.Y-6, at.X+width/2, at.Y+6))
	sty.XAlign, sty.YAlign = draw.XCenter, draw.YCenter
	c.FillText(sty, vg.Point{X: at.X, Y: at.Y + textRise}, text)
}
