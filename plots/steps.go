package plots

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/nsys/perstep"
	"github.com/moebalance/moebalance/router/quantity"
)

// StepTimes is the compute time of every marked step, warm-up among them. Incomplete
// steps are left blank.
func StepTimes(arms ...Arm) StepSpec {
	s := StepSpec{
		Name: "step-time",
		Caption: timedExtent(arms) +
			". Observed compute time of a step added over layers: that of the slowest rank of each layer, and of the " +
			"mean rank. " +
			"Warm-up is drawn and in no mean; incomplete steps are blank.",
	}
	var found findings
	for _, a := range arms {
		k := Steps{Name: a.Name}
		var counted []float64
		for _, step := range a.PerStep.Times.Steps {
			most, mean := step.SlowestNS.Float64(), step.MeanNS.Float64()
			switch {
			case !step.Number.Defined():
				continue
			case step.Excluded == imbalance.Incomplete:
				most, mean = nan, nan
			case step.Excluded == imbalance.Counts:
				counted = append(counted, most)
			}
			k.Numbers, k.MaxNS, k.MeanNS = append(k.Numbers, int(step.Number)), append(k.MaxNS, most),
				append(k.MeanNS, mean)
		}
		s.Arms = append(s.Arms, k)
		if most := knowns(counted); len(most) > 0 {
			found.add(a.Name, fmt.Sprintf("slowest ranks take %s to %s", quantity.Duration(slices.Min(most)),
				quantity.Duration(slices.Max(most))))
		}
	}
	s.Title = found.of("compute " + per(arms))
	return s
}

// StepSpec is the compute of the slowest ranks and of the mean rank in every step: one panel per
// arm on one scale.
type StepSpec struct {
	Name, Title, Caption string
	Arms                 []Steps
}

// Steps is one panel: nanoseconds per step, in step order; NaN where unknown.
type Steps struct {
	Name    string
	Numbers []int
	MaxNS   []float64 // of the upper line
	MeanNS  []float64 // of the lower one
}

// StepLines draws both against the step, from zero, with the gap between them filled.
// Without a known value the error wraps ErrNothing.
func StepLines(s StepSpec) (Figure, error) {
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption}
	most := 0.0
	for _, a := range s.Arms {
		most = max(most, largest(a.MaxNS, a.MeanNS))
	}
	if most == 0 {
		return Figure{}, fmt.Errorf("steps %q: %w: want at least one step with time", s.Name, ErrNothing)
	}
	unit := quantity.TimeUnit(most)
	var panels []*plot.Plot
	for i, a := range s.Arms {
		p := newPanel(panelTitle(a.Name, len(s.Arms)), "step", "compute time ("+unit.Name+")")
		p.X.Tick.Marker = indexTicks{a.Numbers, 8}
		p.Y.Tick.Marker = valueTicks{6, ""}
		p.Y.Min, p.Y.Max = 0, headroom(most/unit.Per)
		at, col := numbered(len(a.Numbers)), armColor(a.Name, i)
		slowest, means := scaled(a.MaxNS, unit.Per), scaled(a.MeanNS, unit.Per)
		p.Add(rules{}, places(len(at)), band{at, means, slowest, tint(col, 0.2)},
			&series{at: at, y: slowest, style: line(col, 1.6), glyph: draw.CircleGlyph{}},
			&series{at: at, y: means, style: line(col, 1.6, 5, 3), glyph: draw.PyramidGlyph{}})
		panels = append(panels, p)
	}
	f.arrange(panels, false, 220)
	f.legend = []key{
		lineKey("slowest rank of each layer", line(ink, 1.6)), lineKey("mean over ranks", line(ink, 1.6, 5, 3)),
		fillKey("between them: loss", tint(softInk, 0.35)),
	}
	return f, nil
}

// StackSpec is the time of every rank by phase, one panel per arm on one scale.
type StackSpec struct {
	Name, Title, Caption string
	Per                  string   // "per step", or "in the capture" where steps are not marked
	Phases               []string // from the start of the bar on
	Names                []string // of the bars, where they are no ranks
	Arms                 []Stack
}

// Stack is one arm: nanoseconds by rank. Work[rank][phase] is compute; Transfer and
// Wait[rank] are the two parts of collectives, Idle[rank] the time without a kernel. Where
// the parts cannot be told apart Wait is NaN and Transfer holds both; all are NaN of a rank
// that the arm lacks.
type Stack struct {
	Name                 string
	Ranks                []int
	Work                 [][]float64
	Transfer, Wait, Idle []float64
}

// phaseColors belong to the phases by name, so that a phase looks the same on
// every page.
var phaseColors = map[string]color.NRGBA{
	string(nsys.PhaseExperts): orange, string(nsys.PhaseAttention): purple, string(nsys.PhaseRouter): yellow,
	string(nsys.PhaseDispatch): tint(skyBlue, 0.55), string(nsys.PhaseCombine): green, string(nsys.PhaseOther): brown,
	string(nsys.PhaseCommunication): softInk, string(nsys.PhaseUnknown): tint(softInk, 0.4),
}

// phaseColor is that of a phase; one of a file that has others is unknown.
func phaseColor(phase string) color.NRGBA {
	if c, ok := phaseColors[phase]; ok {
		return c
	}
	return phaseColors[string(nsys.PhaseUnknown)]
}

// manyRanks is the number of ranks beyond which two panels no longer fit side by
// side, and lines between ranks would hide a heat map.
const manyRanks = 24

// PhaseStacks draws a bar for each rank: work by phase, transfer, wait (hatched) and the
// time without a kernel (outlined). Arms must be rectangular with phases of package nsys;
// without any time the error wraps ErrNothing.
func PhaseStacks(s StackSpec) (Figure, error) {
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption}
	longest, most := 0.0, 0
	for _, a := range s.Arms {
		most = max(most, len(a.Ranks))
		for r := range a.Ranks {
			longest = max(longest, sumDrawable(append([]float64{a.Transfer[r], a.Wait[r], a.Idle[r]}, a.Work[r]...)...))
		}
	}
	if longest == 0 {
		return Figure{}, fmt.Errorf("phases %q: %w: want at least one rank with time", s.Name, ErrNothing)
	}
	unit := quantity.TimeUnit(longest)
	var panels []*plot.Plot
	for _, a := range s.Arms {
		p := newPanel(panelTitle(a.Name, len(s.Arms)), "time "+s.Per+" ("+unit.Name+")", "")
		p.X.Min, p.X.Max = 0, headroom(longest/unit.Per)
		p.X.Tick.Marker = valueTicks{6, ""}
		p.Y.Tick.Marker = s.ticks(a)
		p.Y.Scale = plot.InvertedScale{Normalizer: plot.LinearScale{}} // the first rank on top
		p.Add(&stack{a, s.Phases, unit.Per})
		panels = append(panels, p)
	}
	f.arrange(panels, true, barHeight(most, len(panels)))
	for i, phase := range s.Phases {
		if s.largest(i) > 0.002*longest { // a thinner part is not seen
			f.legend = append(f.legend, fillKey(phase, phaseColor(phase)))
		}
	}
	f.legend = append(f.legend, otherKeys(s.Arms)...)
	return f, nil
}

// largest is the most time that any bar has of a phase.
func (s StackSpec) largest(phase int) (most float64) {
	for _, a := range s.Arms {
		for _, work := range a.Work {
			most = max(most, sumDrawable(work[phase]))
		}
	}
	return most
}

// ticks name the bars of an arm.
func (s StackSpec) ticks(a Stack) plot.Ticker {
	ticks := indexTicks{a.Ranks, 12}.Ticks(0, 0)
	for i := range ticks {
		if ticks[i].Label = "rank " + ticks[i].Label; s.Names != nil {
			ticks[i].Label = s.Names[i]
		}
	}
	return valueNames(ticks)
}

// barHeight is the height of a panel of that many bars and its axis: two panels fit a screen.
func barHeight(bars, panels int) vg.Length {
	if panels > 1 {
		return 44 + vg.Length(min(320, 24*bars))
	}
	return 44 + vg.Length(min(320, 34*bars))
}

var (
	transferFill  = tint(waitInk, 0.75)
	undividedFill = tint(waitInk, 0.4)
	waitGround    = tint(waitInk, 0.15)
)

// divided reports a rank whose collective time is known to be wait or transfer.
func (a Stack) divided(rank int) bool { return drawable(a.Wait[rank]) }

// otherKeys names what is not work, where it is drawn.
func otherKeys(arms []Stack) (keys []key) {
	var divided, undivided, idle bool
	for _, a := range arms {
		for r := range a.Ranks {
			if sumDrawable(a.Wait[r], a.Transfer[r]) > 0 {
				divided, undivided = divided || a.divided(r), undivided || !a.divided(r)
			}
			idle = idle || sumDrawable(a.Idle[r]) > 0
		}
	}
	if divided {
		keys = append(keys, fillKey("transfer", transferFill), hatchKey("waiting in collectives", waitGround, softInk))
	}
	if undivided {
		keys = append(keys, fillKey("collectives, waiting included", undividedFill))
	}
	if idle {
		keys = append(keys, key{"no kernel", swatchWidth, outlineBox})
	}
	return keys
}

// outlineBox is the sign of nothing: a dashed line around an empty place.
func outlineBox(c draw.Canvas, r vg.Rectangle) {
	c.SetLineStyle(line(softInk, 0.7, 2, 2))
	c.Stroke(r.Path())
}

// sumDrawable is the height of a stack.
func sumDrawable(values ...float64) float64 {
	sum := 0.0
	for _, v := range values {
		if drawable(v) {
			sum += v
		}
	}
	return sum
}

type stack struct {
	Stack
	phases []string
	per    float64
}

// DataRange implements plot.DataRanger: the panel sets x itself.
func (s *stack) DataRange() (xmin, xmax, ymin, ymax float64) {
	return math.Inf(1), math.Inf(-1), -0.5, float64(len(s.Ranks)) - 0.5
}

// Plot implements plot.Plotter.
func (s *stack) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for r := range s.Ranks {
		base, low, high := 0.0, y(float64(r)+0.33), y(float64(r)-0.33)
		next := func(v float64, fill func(vg.Rectangle)) {
			if drawable(v) && v > 0 {
				part := box(x(base/s.per), low, x((base+v)/s.per), high)
				if base > 0 { // parts stay apart in gray
					c.StrokeLine2(line(paper, 1.2), part.Min.X, low, part.Min.X, high)
				}
				fill(part)
				s.label(c, part, v)
				base += v
			}
		}
		for i, v := range s.Work[r] {
			next(v, func(part vg.Rectangle) { fillBox(c, phaseColor(s.phases[i]), part) })
		}
		next(s.Transfer[r], func(part vg.Rectangle) {
			fill := undividedFill
			if s.divided(r) {
				fill = transferFill
			}
			fillBox(c, fill, part)
		})
		next(s.Wait[r], func(part vg.Rectangle) { hatchBox(c, waitGround, softInk, part) })
		next(s.Idle[r], func(part vg.Rectangle) { outlineBox(c, part) })
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

// PhaseTimes is the time of each rank by phase, work and collectives apart. Phases
// that no arm has are left out; a rank that an arm lacks is unknown in it.
func PhaseTimes(arms ...Arm) StackSpec {
	s := StackSpec{
		Name: "phase-time", Per: per(arms),
		Caption: timedExtent(arms) + ". Mean over steps of kernel time on each rank.",
	}
	groups := ranks(arms)
	if len(groups) > 1 {
		s.Caption += " Ranks wait for the last one to arrive: its compute or late launches cause the wait."
	}
	byRank := make([]map[int]perstep.Phases, len(arms))
	for i, a := range arms {
		byRank[i] = map[int]perstep.Phases{}
		for r, p := range a.PerStep.Phases() {
			byRank[i][a.PerStep.Ranks[r]] = p
		}
	}
	for _, phase := range nsys.Phases() {
		has := func(arm map[int]perstep.Phases) bool {
			return slices.ContainsFunc(groups, func(rank int) bool { return arm[rank].Work[phase] > 0 })
		}
		if slices.ContainsFunc(byRank, has) {
			s.Phases = append(s.Phases, string(phase))
		}
	}
	for i, a := range arms {
		k := Stack{Name: a.Name, Ranks: groups, Transfer: unknowns(len(groups)), Wait: unknowns(len(groups)),
			Idle: unknowns(len(groups))}
		for r, rank := range groups {
			work := unknowns(len(s.Phases))
			if p := byRank[i][rank]; p.Work != nil {
				for j, phase := range s.Phases {
					work[j] = p.Work[nsys.Phase(phase)]
				}
				k.Wait[r], k.Transfer[r] = p.Wait, p.Transfer
				if !known(p.Wait) {
					k.Transfer[r] = p.Collectives
				}
			}
			k.Work = append(k.Work, work)
		}
		for _, idle := range a.Trace.Idle {
			if r := slices.Index(groups, idle.Rank); r >= 0 && s.Per == "per step" {
				k.Idle[r] = idle.NoKernelNS.Float64()
			}
		}
		s.Arms = append(s.Arms, k)
	}
	s.Title = phaseAnswer(arms, s.Per)
	return s
}

func phaseAnswer(arms []Arm, per string) string {
	means, over := meanPhases(arms)
	if over == "" {
		return "No rank has kernel time in every arm"
	}
	var found findings
	for i, m := range means {
		work := 0.0
		for _, ns := range m.Work {
			work += ns
		}
		text := quantity.Duration(work) + " of work"
		switch {
		case known(m.Wait):
			text += fmt.Sprintf(", %s of transfer, %s of waiting", quantity.Duration(m.Transfer), quantity.Duration(m.Wait))
		case m.Collectives > 0:
			text += fmt.Sprintf(", %s in collectives", quantity.Duration(m.Collectives))
		}
		found.add(arms[i].Name, text)
	}
	return found.of("time " + per + ", mean over " + over)
}

// meanPhases is the mean over ranks of each arm, and which ranks it is over; "" where
// the arms have none in common.
func meanPhases(arms []Arm) (means []perstep.Phases, over string) {
	var traces []*perstep.Trace
	for _, a := range arms {
		traces = append(traces, a.PerStep)
	}
	means, shared := perstep.MeanPhases(traces...)
	switch {
	case len(shared) == 0:
		return means, ""
	case len(shared) < len(ranks(arms)):
		return means, fmt.Sprintf("the %s that every arm has", quantity.Count(len(shared), "rank"))
	}
	return means, "ranks"
}
