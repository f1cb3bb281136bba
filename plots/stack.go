package plots

import (
	"fmt"
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
	Per                  string   // "per step", or "in the capture" where steps are not marked
	Phases               []string // from the start of the bar on
	Arms                 []Stack
}

// Stack is one arm: nanoseconds by bar, that is by rank. Work[bar][phase] is compute;
// Transfer and Wait[bar] are the two parts of collectives, Idle[bar] the time without a
// kernel. Where the parts cannot be told apart Wait is NaN and Transfer holds both; all are
// NaN of a rank that the arm lacks.
type Stack struct {
	Name                 string
	Bars                 []string
	Work                 [][]float64
	Transfer, Wait, Idle []float64
}

// phaseColors belong to the phases by name, so that a phase looks the same on every page.
var phaseColors = map[string]color.NRGBA{
	string(trace.PhaseExperts): orange, string(trace.PhaseAttention): purple, string(trace.PhaseRouter): yellow,
	string(trace.PhaseDispatch): tint(skyBlue, 0.55), string(trace.PhaseCombine): green, string(trace.PhaseOther): brown,
	string(trace.PhaseCommunication): softInk,
}

// phaseColor is the color of a phase; a phase of another program is drawn as unknown.
func phaseColor(phase string) color.NRGBA {
	if c, ok := phaseColors[phase]; ok {
		return c
	}
	return tint(softInk, 0.4)
}

// mostBars is the number of bars of a panel that get a name each.
const mostBars = 12

// parts are the pieces of a bar from its start on: nanoseconds, and how each is drawn. Work
// that cannot be drawn is left out, and so is what an arm lacks.
func (a Stack) parts(phases []string, bar int) (ns []float64, keys []key) {
	add := func(v float64, k key) {
		if drawable(v) && v > 0 {
			ns, keys = append(ns, v), append(keys, k)
		}
	}
	for i, phase := range phases {
		add(a.Work[bar][i], fillKey(phase, phaseColor(phase)))
	}
	if drawable(a.Wait[bar]) {
		add(a.Transfer[bar], fillKey("transfer", waitInk))
		add(a.Wait[bar], key{"waiting in collectives", swatchWidth, func(c draw.Canvas, r vg.Rectangle) {
			hatchBox(c, tint(waitInk, 0.15), softInk, r)
		}})
	} else {
		add(a.Transfer[bar], fillKey("collectives, waiting included", tint(waitInk, 0.4)))
	}
	add(a.Idle[bar], key{"no kernel", swatchWidth, outlineBox})
	return ns, keys
}

// PhaseStacks draws a bar for each rank: work by phase, transfer, wait (hatched) and the
// time without a kernel (outlined). Without any time the error wraps ErrNothing.
func PhaseStacks(s StackSpec) (Figure, error) {
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption}
	longest, most, widest := 0.0, 0, map[string]float64{}
	var found []key
	for _, a := range s.Arms {
		most = max(most, len(a.Bars))
		for bar := range a.Bars {
			ns, keys := a.parts(s.Phases, bar)
			sum := 0.0
			for i, v := range ns {
				sum += v
				if widest[keys[i].label] == 0 {
					found = append(found, keys[i])
				}
				widest[keys[i].label] = max(widest[keys[i].label], v)
			}
			longest = max(longest, sum)
		}
	}
	if longest == 0 {
		return Figure{}, fmt.Errorf("phases %q: %w: want at least one rank with time", s.Name, ErrNothing)
	}
	for _, k := range found {
		if widest[k.label] > 0.002*longest { // a thinner part is not seen
			f.legend = append(f.legend, k)
		}
	}
	unit := quantity.TimeUnit(longest)
	for _, a := range s.Arms {
		p := newPanel(panelTitle(a.Name, len(s.Arms)), "time "+s.Per+" ("+unit.Name+")", "")
		p.X.Min, p.X.Max = 0, headroom(longest/unit.Per)
		p.X.Tick.Marker = valueTicks{""}
		p.Y.Tick.Marker = indexTicks{a.Bars, mostBars}
		p.Y.Scale = plot.InvertedScale{Normalizer: plot.LinearScale{}} // the first rank on top
		p.Add(&stack{a, s.Phases, unit.Per})
		f.panels = append(f.panels, p)
		f.height += 44 + vg.Length(min(320, 28*most))
	}
	return f, nil
}

// outlineBox is the sign of nothing: a dashed line around an empty place.
func outlineBox(c draw.Canvas, r vg.Rectangle) {
	c.SetLineStyle(line(softInk, 0.7, 2, 2))
	c.Stroke(r.Path())
}

type stack struct {
	Stack
	phases []string
	per    float64
}

// DataRange implements plot.DataRanger: the panel sets x itself.
func (s *stack) DataRange() (xmin, xmax, ymin, ymax float64) {
	return math.Inf(1), math.Inf(-1), -0.5, float64(len(s.Bars)) - 0.5
}

// Plot implements plot.Plotter.
func (s *stack) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for bar := range s.Bars {
		base, low, high := 0.0, y(float64(bar)+0.33), y(float64(bar)-0.33)
		ns, keys := s.parts(s.phases, bar)
		for i, v := range ns {
			part := box(x(base/s.per), low, x((base+v)/s.per), high)
			if base > 0 { // parts stay apart in gray
				c.StrokeLine2(line(paper, 1.2), part.Min.X, low, part.Min.X, high)
			}
			keys[i].sample(c, part)
			s.label(c, part, v)
			base += v
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
