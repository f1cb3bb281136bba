package nsys

import (
	"cmp"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
)

// stepWindow is a step of one rank, from its first kernel to that of the next step. The
// only step ends with its last kernel.
type stepWindow struct {
	step     router.Whole
	from, to int64
}

// stepWindows are the steps of a rank that have an end, in order.
func (p *rankEvents) stepWindows() (windows []stepWindow, begun []router.Whole) {
	starts, end := map[router.Whole]int64{}, int64(0) // end of the last kernel in a step
	for i := range p.events {
		e := &p.events[i]
		step := router.Whole(p.of.locations[e.location].Step)
		if !step.Defined() {
			continue
		}
		end = max(end, e.start+e.duration)
		if _, known := starts[step]; !known { // events are in the order of time
			starts[step] = e.start
			begun = append(begun, step)
		}
	}
	slices.Sort(begun)
	for _, step := range begun {
		to, next := starts[step+1]
		if len(begun) == 1 {
			to, next = end, true
		}
		if next && to >= starts[step] {
			windows = append(windows, stepWindow{step, starts[step], to})
		}
	}
	return windows, begun
}

// stepTimes fills StepTimes and Idle.
func (r *reduction) stepTimes() {
	sum, ranks, all := map[router.Whole]int64{}, map[router.Whole]int{}, map[router.Whole]bool{}
	counted := r.times.StepsOf(imbalance.Counts)
	for _, p := range r.ranks {
		windows, begun := p.stepWindows()
		for _, step := range begun {
			all[step] = true
		}
		for _, w := range windows {
			sum[w.step] += w.to - w.from
			ranks[w.step]++
		}
		windows = slices.DeleteFunc(windows, func(w stepWindow) bool { return !slices.Contains(counted, int(w.step)) })
		r.trace.Idle = append(r.trace.Idle, p.idle(windows))
	}
	for _, step := range slices.Sorted(maps.Keys(all)) {
		wall := router.Undefined()
		if ranks[step] == len(r.ranks) {
			wall = router.Number(sum[step]) / router.Number(len(r.ranks))
		}
		r.trace.StepTimes = append(r.trace.StepTimes, StepTime{step, wall, r.ranks[0].of.stepNames[int32(step)]})
	}
}

// idle is the mean over windows, which do not overlap.
func (p *rankEvents) idle(windows []stepWindow) RankIdle {
	out := RankIdle{Rank: p.rank.Rank, Steps: len(windows), NoKernelNS: router.Undefined(), WallNS: router.Undefined()}
	if len(windows) == 0 || len(p.graphs) > 0 {
		return out
	}
	slices.SortFunc(windows, func(a, b stepWindow) int { return cmp.Compare(a.from, b.from) })
	var wall, busy int64
	for _, w := range windows {
		wall += w.to - w.from
	}
	at, until := 0, windows[0].from // kernels up to here are counted
	for i := range p.events {
		e := &p.events[i]
		end := e.start + e.duration
		for at < len(windows) && windows[at].to <= e.start {
			at++
		}
		for k := at; k < len(windows) && windows[k].from < end; k++ {
			busy += max(0, min(end, windows[k].to)-max(e.start, windows[k].from, until))
		}
		until = max(until, end)
	}
	n := router.Number(len(windows))
	out.NoKernelNS, out.WallNS = router.Number(wall-busy)/n, router.Number(wall)/n
	return out
}

// WallTimes are the wall times of the steps that have one.
func (t *Trace) WallTimes() map[router.Whole]float64 {
	wall := map[router.Whole]float64{}
	for _, s := range t.StepTimes {
		if s.WallNS.Defined() {
			wall[s.Step] = s.WallNS.Float64()
		}
	}
	return wall
}
