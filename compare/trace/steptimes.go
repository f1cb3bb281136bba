package trace

import (
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/router"
)

// StepTime is the wall time of one step under the profiler: from the step's first kernel
// to the beginning of the next step, mean over ranks. The last step, and one that the next number
// does not follow, has none; the only step ends with its last kernel. Undefined
// where some rank has no such time.
type StepTime struct {
	Step   router.OptInt `json:"step"`
	WallNS router.Number `json:"wall_ns"`
	Range  string        `json:"range,omitempty"` // the name of the range that marks it on the first rank
	Batch  ranges.Batch  `json:"-"`               // what the ranges of all ranks say
}

// Idle is how long the GPU of a rank runs no kernel in a step, and how long the step is on
// that rank, both as means over steps. Undefined without any.
type Idle struct {
	Rank       int           `json:"rank"`
	Steps      int           `json:"steps"` // that count and have an end
	NoKernelNS router.Number `json:"no_kernel_ns"`
	WallNS     router.Number `json:"wall_ns"`
}

// moment is a time on a rank, and how long its GPU has run kernels until then.
type moment struct{ at, busy int64 }

// begins are when the steps of a rank begin, and when the last kernel of any ends.
func (p *rankEvents) begins() (begins map[int32]moment, end moment) {
	begins = map[int32]moment{}
	busy, until, latest := int64(0), int64(-1<<62), int32(NoID)
	for i := range p.events {
		e := &p.events[i]
		step := p.place(e).Step
		if step != latest && step != NoID {
			if latest = step; begins[step] == (moment{}) {
				begins[step] = moment{e.Start, busy - max(0, until-e.Start)}
			}
		}
		busy += max(0, e.end()-max(e.Start, until))
		if until = max(until, e.end()); step != NoID && e.end() > end.at {
			end = moment{e.end(), busy - (until - e.end())}
		}
	}
	return begins, end
}

// stepTimes fills StepTimes and Idle.
func (r *reduction) stepTimes() {
	wall, ranks := map[int32]int64{}, map[int32]int{} // of steps
	for _, p := range r.ranks {
		idle := Idle{Rank: p.Rank.Rank}
		begins, end := p.begins()
		for step, from := range begins {
			wall[step] += 0
			to, ends := begins[step+1]
			if len(begins) == 1 {
				to, ends = end, true
			}
			length := to.at - from.at
			if !ends || length < 0 {
				continue
			}
			wall[step] += length
			ranks[step]++
			if r.counts(step) && p.Hidden.Launches == 0 { // graphs hide kernels
				idle.Steps++
				idle.WallNS += router.Number(length)
				idle.NoKernelNS += router.Number(length - (to.busy - from.busy))
			}
		}
		idle.WallNS /= router.Number(idle.Steps) // 0/0 is NaN: undefined
		idle.NoKernelNS /= router.Number(idle.Steps)
		r.trace.Idle = append(r.trace.Idle, idle)
	}
	for _, step := range slices.Sorted(maps.Keys(wall)) {
		s := StepTime{router.OptInt(step), router.Undefined(), r.ranks[0].of.StepNames[step], r.batch(step)}
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
