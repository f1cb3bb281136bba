package nsys

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys/capture"
	"github.com/moebalance/moebalance/compare/nsys/wait"
	"github.com/moebalance/moebalance/router"
)

// Steps is a range of steps, both ends included.
type Steps struct{ First, Last int }

// ErrSteps is the error of a range of steps that the captures do not have.
var ErrSteps = errors.New("no such steps")

// ParseSteps reads "3-7", or "3" for one step.
func ParseSteps(text string) (*Steps, error) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	a, err := strconv.Atoi(strings.TrimSpace(first))
	b, otherErr := strconv.Atoi(strings.TrimSpace(last))
	if err != nil || otherErr != nil || a < 0 || b < a || b > math.MaxInt32 {
		return nil, fmt.Errorf("want the first and the last step, such as 3-7, have %q", text)
	}
	return &Steps{a, b}, nil
}

// String is how ParseSteps reads it.
func (s Steps) String() string {
	if s.First == s.Last {
		return strconv.Itoa(s.First)
	}
	return fmt.Sprintf("%d-%d", s.First, s.Last)
}

// selectSteps keeps only what ran in the steps that count. Where the range is not within
// what any rank recorded, the error wraps ErrSteps. A share of kernels without launch is
// known of whole captures only.
func (r *reduction) selectSteps() error {
	want := r.options.Steps
	if want == nil {
		return nil
	}
	recorded := r.recordedSteps()
	if len(recorded) == 0 {
		return fmt.Errorf("--steps %s: %w: none are known; name them by NVTX ranges, or with --step-pattern", want, ErrSteps)
	}
	least, most := int(recorded[0]), int(recorded[len(recorded)-1])
	if want.First < least || want.Last > most {
		return fmt.Errorf("--steps %s: %w: the captures have %s", want, ErrSteps, Steps{least, most})
	}
	r.keep(func(step int32) bool { return int(step) >= want.First && int(step) <= want.Last })
	r.trace.Steps = want.String()
	r.warn("selected_steps", "", "first", want.First, "last", want.Last, "least", least, "most", most)
	return nil
}

// keep leaves only what ran in some steps.
func (r *reduction) keep(within func(step int32) bool) {
	for _, p := range r.ranks {
		p.events = slices.DeleteFunc(p.events,
			func(e kernelEvent) bool { return !within(p.of.Places[e.location].Step) })
		p.Graphs = slices.DeleteFunc(p.Graphs, func(g graphEvent) bool { return !within(g.Step) })
	}
	r.partial = true
}

// recordedSteps are the numbers of the steps in which any rank ran, ascending.
func (r *reduction) recordedSteps() []int32 {
	steps := map[int32]bool{}
	for _, p := range r.ranks {
		for i := range p.events {
			steps[p.of.Places[p.events[i].location].Step] = true
		}
		for _, g := range p.Graphs {
			steps[g.Step] = true
		}
	}
	delete(steps, NoID)
	return slices.Sorted(maps.Keys(steps))
}

// stepTimes fills StepTimes and Idle.
func (r *reduction) stepTimes() {
	sum, ranks, all := map[router.OptInt]int64{}, map[router.OptInt]int{}, map[router.OptInt]bool{}
	counted := r.times.StepsOf(imbalance.Counts)
	for _, p := range r.ranks {
		kernels := func(yield func(wait.Kernel) bool) { p.yield(r, yield) }
		windows, begun := wait.Windows(kernels)
		for _, step := range begun {
			all[router.OptInt(step)] = true
		}
		for _, w := range windows {
			sum[router.OptInt(w.Step)] += w.To - w.From
			ranks[router.OptInt(w.Step)]++
		}
		windows = slices.DeleteFunc(windows, func(w wait.Window) bool { return !slices.Contains(counted, int(w.Step)) })
		if len(p.Graphs) > 0 {
			windows = nil // graphs hide kernels
		}
		r.trace.Idle = append(r.trace.Idle, wait.IdleOf(p.Rank.Rank, kernels, windows))
	}
	for _, step := range slices.Sorted(maps.Keys(all)) {
		wall := router.Undefined()
		if ranks[step] == len(r.ranks) {
			wall = router.Number(sum[step]) / router.Number(len(r.ranks))
		}
		r.trace.StepTimes = append(r.trace.StepTimes, StepTime{step, wall, r.ranks[0].of.StepNames[int32(step)]})
	}
}

// WallTimes are the wall times of the steps that have one.
func (t *Trace) WallTimes() map[router.OptInt]float64 {
	wall := map[router.OptInt]float64{}
	for _, s := range t.StepTimes {
		if s.WallNS.Defined() {
			wall[s.Step] = s.WallNS.Float64()
		}
	}
	return wall
}

// waits fills Collectives, Alignment, Waits and Variants.
func (r *reduction) waits() {
	in := wait.Input{World: int(max(0, r.trace.World)), Names: r.names.Values, Steps: map[int32]bool{},
		StepNS: r.trace.OverSteps.Step.MeanNS.Float64()}
	for _, step := range r.times.StepsOf(imbalance.Counts) {
		in.Steps[int32(step)] = true
	}
	for _, p := range r.ranks {
		in.Ranks = append(in.Ranks, wait.Rank{
			Number: p.Rank.Rank, Report: slices.Index(r.exports, p.of), Session: p.of.Session, Late: p.Late,
			Kernels: func(yield func(wait.Kernel) bool) { p.yield(r, yield) },
		})
		in.GC, in.GIL = in.GC || p.of.GC, in.GIL || p.of.GIL
	}
	t, found := r.trace, wait.Of(in)
	t.Collectives, t.Alignment = append(t.Collectives, found.Collectives...), append(t.Alignment, found.Alignment...)
	t.Waiting = found.Waiting
	t.Waits, t.Variants = append(t.Waits, found.Waits...), append(t.Variants, found.Variants...)
	t.Warnings = append(t.Warnings, found.Warnings...)
}

// yield lists the kernels of a rank in the order of time.
func (p *rankEvents) yield(r *reduction, yield func(wait.Kernel) bool) {
	names, gemms := r.nameOf[p.of], r.times.Of == imbalance.OfGEMM
	for i := range p.events {
		e := &p.events[i]
		at, c := &p.of.Places[e.location], &p.of.classes[e.name]
		collective := c.Collective && !c.FusedExperts()
		expert := at.Phase == PhaseExperts && !c.Collective && (c.GEMM || !gemms) && r.judged(router.OptInt(at.Layer))
		if !yield(wait.Kernel{Start: e.start, End: e.start + e.duration, Step: at.Step, Layer: at.Layer,
			Phase: at.Phase, Name: names[e.name], Collective: collective, Expert: expert}) {
			return
		}
	}
}

// lateness sums the host lateness before each collective of a rank, in the order of
// time; nil where no launch is recorded.
func (a *attribution) lateness(r *rankEvents) []wait.Late {
	order := slices.Clone(r.kernels)
	slices.SortFunc(order, func(x, y int32) int { return cmp.Compare(a.rec.Kernels[x].Start, a.rec.Kernels[y].Start) })
	list, sum, recorded := []wait.Late(nil), wait.Late{}, false
	free := int64(capture.TimeLimit) // when the GPU became free; before the first kernel nobody knows
	for _, i := range order {
		k := &a.rec.Kernels[i]
		if a.rec.Launched(k) {
			recorded = true
			l := &a.rec.Launches[k.Launch]
			if until := min(k.Start, l.End); until > free {
				sum.NS += until - free
				sum.GC += a.python.Collects[r.device.Process].Within(free, until)
				sum.GIL += a.python.Locked[l.Thread].Within(free, until)
				sum.Call += max(0, until-max(free, l.Start))
			}
		}
		if free = max(free, k.End); i == order[0] {
			free = k.End
		}
		if a.classes[k.Name].Collective {
			sum.At = k.Start
			list, sum = append(list, sum), wait.Late{}
		}
	}
	if !recorded {
		return nil
	}
	return list
}
