package trace

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace/wait"
	"github.com/moebalance/moebalance/router"
)

// waits fills Collectives, Alignment and Waiting.
func (r *reduction) waits() {
	in := wait.Input{World: int(max(0, r.trace.World)), Names: r.names.Values, Steps: map[int32]bool{},
		StepNS: r.trace.Bound.StepNS.Float64()}
	for _, step := range r.times.StepsOf(imbalance.Counts) {
		in.Steps[int32(step)] = true
	}
	for _, p := range r.ranks {
		in.Ranks = append(in.Ranks, wait.Rank{
			Number: p.Rank.Rank, Report: slices.Index(r.exports, p.of), Session: p.of.Session, Late: p.Late,
			Kernels: func(yield func(wait.Kernel) bool) { p.yield(r, yield) },
		})
	}
	t, found := r.trace, wait.Of(in)
	t.Collectives, t.Alignment = append(t.Collectives, found.Collectives...), append(t.Alignment, found.Alignment...)
	t.Waiting = found.Waiting
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
