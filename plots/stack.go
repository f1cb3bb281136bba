package plots

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/nsys/perstep"
	"github.com/moebalance/moebalance/router/quantity"
)

// StackSpec is the time of every rank by phase, one panel per arm on one scale.
type StackSpec struct {
	Name, Title, Caption, Alt string
	Per                       string   // "per step", or "in the capture" where steps are not marked
	Phases                    []string // from the line upwards
	Arms                      []Stack
}

// Stack is one arm: nanoseconds by rank. Work[rank][phase] is compute; Wait and
// Transfer[rank] are the two parts of collectives. Where the two cannot be told
// apart Wait is NaN and Transfer holds both; all three are NaN of a rank that the
// arm lacks.
type Stack struct {
	Name     string
	Ranks    []int
	Work     [][]float64
	Wait     []float64
	Transfer []float64
}

// phaseColors belong to the phases by name, so that a phase looks the same on
// every page.
var phaseColors = map[string]color.NRGBA{
	string(nsys.PhaseExperts): orange, string(nsys.PhaseAttention): purple, string(nsys.PhaseRouter): yellow,
	string(nsys.PhaseDispatch): skyBlue, string(nsys.PhaseCombine): green, string(nsys.PhaseOther): brown,
	string(nsys.PhaseCommunication): softInk, string(nsys.PhaseUnknown): tint(softInk, 0.4),
}

// manyRanks is the number of ranks beyond which two panels no longer fit side by
// side, and lines between ranks would hide a heat map.
const manyRanks = 24

// PhaseStacks draws work upwards from the zero line, stacked by phase, and
// collectives downwards, transfer solid and wait hatched. Arms must be rectangular
// with phases of package nsys; without any time the error wraps ErrNothing.
func PhaseStacks(s StackSpec) (Figure, error) {
	if err := s.check(); err != nil {
		return Figure{}, err
	}
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption, Alt: s.Alt}
	up, down := s.reach()
	if up == 0 && down == 0 {
		return Figure{}, fmt.Errorf("phases %q: %w: want at least one rank with time", s.Title, ErrNothing)
	}
	unit := quantity.TimeUnit(max(up, down))
	var panels []*plot.Plot
	many := false
	for _, a := range s.Arms {
		p := newPanel(a.Name, "rank", "time "+s.Per+" ("+unit.Name+")")
		p.X.Tick.Marker = indexTicks{a.Ranks, 12}
		p.Y.Tick.Marker = unsigned{valueTicks{6, ""}}
		p.Y.Min, p.Y.Max = -down/unit.Per*1.06, headroom(up/unit.Per)
		p.Add(rules{}, &stack{places(len(a.Ranks)), a, s.Phases, unit.Per})
		panels, many = append(panels, p), many || len(a.Ranks) > manyRanks
	}
	f.arrange(panels, many, 260)
	for _, phase := range s.Phases {
		f.legend = append(f.legend, fillKey(phase, phaseColors[phase]))
	}
	f.legend = append(f.legend, collectiveKeys(s.Arms)...)
	return f, nil
}

func (s StackSpec) check() error {
	for _, phase := range s.Phases {
		if _, ok := phaseColors[phase]; !ok {
			return fmt.Errorf("phases %q: unknown phase %q: want those of a trace", s.Title, phase)
		}
	}
	for _, a := range s.Arms {
		if len(a.Work) != len(a.Ranks) || len(a.Wait) != len(a.Ranks) || len(a.Transfer) != len(a.Ranks) {
			return fmt.Errorf("phases of %q: want values for %d ranks, have %d, %d and %d",
				a.Name, len(a.Ranks), len(a.Work), len(a.Wait), len(a.Transfer))
		}
		for r, work := range a.Work {
			if len(work) != len(s.Phases) {
				return fmt.Errorf("phases of %q rank %d: want %d values, have %d", a.Name, a.Ranks[r], len(s.Phases),
					len(work))
			}
		}
	}
	return nil
}

// reach is the tallest stack of work and the deepest of collectives.
func (s StackSpec) reach() (up, down float64) {
	for _, a := range s.Arms {
		for r := range a.Ranks {
			up = max(up, sumDrawable(a.Work[r]...))
			down = max(down, sumDrawable(a.Wait[r], a.Transfer[r]))
		}
	}
	return up, down
}

// unsigned labels negative ticks with their absolute value: below the line is a
// direction, not a sign.
type unsigned struct{ valueTicks }

// Ticks implements plot.Ticker.
func (u unsigned) Ticks(low, high float64) []plot.Tick {
	ticks := u.valueTicks.Ticks(low, high)
	for i := range ticks {
		ticks[i].Label = strings.TrimPrefix(ticks[i].Label, "−")
	}
	return ticks
}

var (
	transferFill  = tint(waitInk, 0.75)
	undividedFill = tint(waitInk, 0.4)
	waitGround    = tint(waitInk, 0.15)
)

// divided reports a rank whose collective time is known to be wait or transfer.
func (a Stack) divided(rank int) bool { return drawable(a.Wait[rank]) }

// collectiveKeys names what hangs below the line; the first key says so.
func collectiveKeys(arms []Stack) (keys []key) {
	divided, undivided := false, false
	for _, a := range arms {
		for r := range a.Ranks {
			if sumDrawable(a.Wait[r], a.Transfer[r]) > 0 {
				divided, undivided = divided || a.divided(r), undivided || !a.divided(r)
			}
		}
	}
	if divided {
		keys = append(keys, fillKey("collective transfer", transferFill), hatchKey("collective wait", waitGround,
			softInk))
	}
	if undivided {
		keys = append(keys, fillKey("collectives, wait and transfer together", undividedFill))
	}
	if len(keys) > 0 {
		keys[0].label = "below the line: " + keys[0].label
	}
	return keys
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
	places
	Stack
	phases []string
	per    float64
}

// Plot implements plot.Plotter.
func (s *stack) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	share := groupShare(len(s.Ranks))
	for r := range s.Ranks {
		left, right := x(float64(r)-share/2), x(float64(r)+share/2)
		slice := func(from, to float64) vg.Rectangle { return box(left, y(from/s.per), right, y(to/s.per)) }
		base := 0.0
		for i, v := range s.Work[r] {
			if drawable(v) {
				fillBox(c, phaseColors[s.phases[i]], slice(base, base+v))
				base += v
			}
		}
		base = 0
		if v := s.Transfer[r]; drawable(v) {
			fill := undividedFill
			if s.divided(r) {
				fill = transferFill
			}
			fillBox(c, fill, slice(-v, 0))
			base = v
		}
		if v := s.Wait[r]; drawable(v) {
			hatchBox(c, waitGround, softInk, slice(-base-v, -base))
		}
	}
	acrossLine(c, line(ink, 0.8), y(0))
}

// PhaseTimes is the time of each rank by phase, work and collectives apart. Phases
// that no arm has are left out; a rank that an arm lacks is unknown in it.
func PhaseTimes(arms ...Arm) StackSpec {
	s := StackSpec{
		Name: "phase-time", Title: "Where does the time of each rank go?", Per: per(arms),
		Caption: timedExtent(arms) +
			". Observed kernel time by rank, mean over steps. Work stands above the line, collectives hang below it: " +
			"ranks wait for the last one to arrive, whose compute or late launches the wait mirrors; adding it would double-count.",
	}
	groups := ranks(arms)
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
		k := Stack{Name: a.Name, Ranks: groups, Wait: unknowns(len(groups)), Transfer: unknowns(len(groups))}
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
		s.Arms = append(s.Arms, k)
	}
	s.Alt = phaseAnswer(arms, s.Per)
	return s
}

func phaseAnswer(arms []Arm, per string) string {
	means, over := MeanPhases(arms)
	if over == "" {
		return "No rank has kernel time in every arm."
	}
	var out []string
	for i, m := range means {
		var work []float64
		for _, phase := range nsys.Phases() {
			work = append(work, m.Work[phase])
		}
		waiting := ""
		if known(m.Wait) {
			waiting = fmt.Sprintf(" (%s of it waiting)", quantity.Duration(m.Wait))
		}
		out = append(out, fmt.Sprintf("%s: %s of work and %s in collectives%s %s, mean over %s.",
			arms[i].Name, quantity.Duration(floats.Sum(work)), quantity.Duration(m.Collectives), waiting, per, over))
	}
	return sentences(out)
}

// MeanPhases is the mean over ranks of each arm, and which ranks it is over; "" where
// the arms have none in common.
func MeanPhases(arms []Arm) (means []perstep.Phases, over string) {
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
