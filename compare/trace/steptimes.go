package trace

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/router"
)

// StepTime is the wall time of one step under the profiler: from the step's first kernel
// to that of the next step, mean over ranks. The last step, and one that the next number
// does not follow, has none; the only step ends with its last kernel. Undefined
// where some rank has no such time.
type StepTime struct {
	Step   router.OptInt `json:"step"`
	WallNS router.Number `json:"wall_ns"`
	Range  string        `json:"range,omitempty"` // the name of the range that marks it
}

// Idle is how long the GPU of a rank runs no kernel in a step, and how long the step is on
// that rank, both as means over steps. Undefined without any.
type Idle struct {
	Rank       int           `json:"rank"`
	Steps      int           `json:"steps"` // that count and have an end
	NoKernelNS router.Number `json:"no_kernel_ns"`
	WallNS     router.Number `json:"wall_ns"`
}

// window is a step of one rank, from its first kernel to the first one of the next step. The
// only step ends with its last kernel.
type window struct {
	step     int32
	from, to int64
}

// windows are the steps of a rank that have an end, in order, and the numbers of all.
func (p *rankEvents) windows() (windows []window, begun []int32) {
	starts, end := map[int32]int64{}, int64(0) // end of the last kernel in a step
	for i := range p.events {
		e := &p.events[i]
		step := p.place(e).Step
		if step == NoID {
			continue
		}
		if end = max(end, e.end()); len(begun) > 0 && begun[len(begun)-1] == step {
			continue
		}
		if _, known := starts[step]; !known {
			starts[step] = e.Start
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
			windows = append(windows, window{step, starts[step], to})
		}
	}
	return windows, begun
}

// idle is the mean over windows that do not overlap.
func (p *rankEvents) idle(windows []window) Idle {
	slices.SortFunc(windows, func(a, b window) int { return cmp.Compare(a.from, b.from) })
	var wall, busy int64
	for _, w := range windows {
		wall += w.to - w.from
	}
	at, until := 0, -int64(1<<62) // kernels up to here are counted
	for i := range p.events {
		e := &p.events[i]
		for at < len(windows) && windows[at].to <= e.Start {
			at++
		}
		for _, w := range windows[at:] {
			if w.from >= e.end() {
				break
			}
			busy += max(0, min(e.end(), w.to)-max(e.Start, w.from, until))
		}
		until = max(until, e.end())
	}
	n := router.Number(len(windows)) // 0/0 is NaN: undefined
	return Idle{p.Rank.Rank, len(windows), router.Number(wall-busy) / n, router.Number(wall) / n}
}

// stepTimes fills StepTimes and Idle.
func (r *reduction) stepTimes() {
	wall, ranks := map[int32]int64{}, map[int32]int{} // of steps
	counted := imbalance.Places(r.times.StepsOf(imbalance.Counts))
	for _, p := range r.ranks {
		windows, begun := p.windows()
		for _, step := range begun {
			wall[step] += 0
		}
		for _, w := range windows {
			wall[w.step] += w.to - w.from
			ranks[w.step]++
		}
		windows = slices.DeleteFunc(windows, func(w window) bool {
			_, counts := counted[int(w.step)]
			return !counts || p.Hidden.Launches > 0 // graphs hide kernels
		})
		r.trace.Idle = append(r.trace.Idle, p.idle(windows))
	}
	for _, step := range slices.Sorted(maps.Keys(wall)) {
		s := StepTime{router.OptInt(step), router.Undefined(), r.ranks[0].of.StepNames[step]}
		if ranks[step] == len(r.ranks) {
			s.WallNS = router.Number(wall[step]) / router.Number(len(r.ranks))
		}
		r.trace.StepTimes = append(r.trace.StepTimes, s)
	}
}

// Treatment is the switch by which bench reaches the engine that ran, as the ranges of its steps tell: "hook" for
// engines on PyTorch, "" for TensorRT-LLM and where no range tells.
func (t *Trace) Treatment() string {
	onPyTorch := func(s StepTime) bool {
		return ranges.BatchOf(s.Range).Named && !strings.HasPrefix(s.Range, "[Executor]")
	}
	if slices.ContainsFunc(t.StepTimes, onPyTorch) {
		return "hook"
	}
	return ""
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
