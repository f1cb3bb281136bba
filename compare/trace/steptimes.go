package trace

import (
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/trace/wait"
	"github.com/moebalance/moebalance/router"
)

// stepTimes fills StepTimes and Idle.
func (r *reduction) stepTimes() {
	sum, ranks, all := map[router.OptInt]int64{}, map[router.OptInt]int{}, map[router.OptInt]bool{}
	counted := r.times.StepsOf(imbalance.Counts)
	for _, p := range r.ranks {
		windows, begun := wait.Windows(p.yield)
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
		r.trace.Idle = append(r.trace.Idle, wait.IdleOf(p.Rank.Rank, p.yield, windows))
	}
	for _, step := range slices.Sorted(maps.Keys(all)) {
		wall := router.Undefined()
		if ranks[step] == len(r.ranks) {
			wall = router.Number(sum[step]) / router.Number(len(r.ranks))
		}
		r.trace.StepTimes = append(r.trace.StepTimes, StepTime{step, wall, r.ranks[0].of.StepNames[int32(step)]})
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
