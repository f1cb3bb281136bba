package trace

import (
	"maps"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// StepTime is the wall time of one step under the profiler: from its beginning to the beginning of the
// next step, mean over ranks. The last step, and one that the next number does not follow, has none; the
// only step ends with its last kernel. Undefined where some rank has no such time.
type StepTime struct {
	Step       router.OptInt `json:"step"`
	WallNS     router.Number `json:"wall_ns"`
	NoKernelNS router.Number `json:"no_kernel_ns"`    // the part in which a GPU ran nothing, where no graph hides kernels
	Range      string        `json:"range,omitempty"` // the name of the range that marks it on the first rank
	Batch      ranges.Batch  `json:"-"`               // what the ranges of all ranks say
}

// RankStep is how a rank spends a step, mean over the steps that count: an instant counts once, where kernels of
// two streams run side by side as the work that began first, and as collective only without work. Wait and transfer
// are the parts of its collectives before and after the last rank arrived, undefined where the steps cannot be
// replayed. Without kernel is the rest of the step's wall time, undefined where no step has one.
type RankStep struct {
	Rank         int                     `json:"rank"`
	WorkNS       map[Phase]router.Number `json:"work_ns"` // outside collectives
	CollectiveNS router.Number           `json:"collective_ns"`
	WaitNS       router.Number           `json:"wait_ns"`
	TransferNS   router.Number           `json:"transfer_ns"`
	NoKernelNS   router.Number           `json:"no_kernel_ns"`
}

// moment is a time on a rank, and how long its GPU has run kernels until then.
type moment struct{ at, busy int64 }

// spend gives what a rank spends its steps on, when these begin, and when the last kernel of any ends. A step begins
// behind the expert GEMMs of the step before: kernels of a second stream that run beside these do not begin it, however
// early the host launched them.
func (r *reduction) spend(p *rankEvents) (t RankStep, begins map[int32]moment, end moment) {
	none := router.Undefined()
	t, begins = RankStep{p.Rank.Rank, map[Phase]router.Number{}, 0, none, none, none}, map[int32]moment{}
	var work, all kernel.Busy
	n, latest := router.Number(len(r.counted)), int32(NoID)
	for e, at := range p.each() {
		if at.Step != NoID && at.Step < latest && p.class(e).GEMM {
			maps.DeleteFunc(begins, func(step int32, _ moment) bool { return step > at.Step })
			latest = at.Step
		}
		if _, known := begins[at.Step]; !known && at.Step != NoID {
			begins[at.Step], latest = moment{e.Start, all.At(e.Start)}, max(latest, at.Step)
		}
		working, before := -work.NS, all.NS
		if all.Add(e.Start, e.NS); !p.class(e).Collective {
			work.Add(e.Start, e.NS)
		}
		if working += work.NS; r.counts(at.Step) {
			t.CollectiveNS += router.Number(all.NS-before-working) / n
			if working > 0 {
				t.WorkNS[at.Phase] += router.Number(working) / n
			}
		}
		if at.Step != NoID && e.end() > end.at {
			end = moment{e.end(), all.At(e.end())}
		}
	}
	return t, begins, end
}

// stepTimes fills StepTimes and RankSteps.
func (r *reduction) stepTimes() {
	type length struct{ wall, idle []float64 } // of a step, by rank
	lengths := map[int32]length{}
	for _, p := range r.ranks {
		spent, begins, end := r.spend(p)
		var own []float64
		for step, from := range begins {
			to, ends := begins[step+1]
			if len(begins) == 1 {
				to, ends = end, true
			}
			l, wall := lengths[step], to.at-from.at
			if ends && wall >= 0 {
				l.wall = append(l.wall, float64(wall))
				if idle := float64(wall - (to.busy - from.busy)); p.Hidden.Launches == 0 { // else graphs hide kernels
					l.idle = append(l.idle, idle)
					if r.counts(step) {
						own = append(own, idle)
					}
				}
			}
			lengths[step] = l // of a step without an end, too
		}
		if spent.NoKernelNS = router.Number(stat.Mean(own, nil)); len(r.counted) > 0 {
			r.trace.RankSteps = append(r.trace.RankSteps, spent)
		}
	}
	mean := func(ranks []float64) router.Number {
		if len(ranks) < len(r.ranks) {
			return router.Undefined()
		}
		return router.Number(stat.Mean(ranks, nil))
	}
	for _, step := range slices.Sorted(maps.Keys(lengths)) {
		r.trace.StepTimes = append(r.trace.StepTimes, StepTime{router.OptInt(step), mean(lengths[step].wall),
			mean(lengths[step].idle), r.ranks[0].of.StepNames[step], r.batch(step)})
	}
}

// Treatment is the switch by which bench reaches the engine that ran, as the ranges of its steps tell: "hook" for
// engines on PyTorch, "" for TensorRT-LLM and where no range tells.
func (t *Trace) Treatment() string {
	for _, s := range t.StepTimes {
		if ranges.BatchOf(s.Range).Named && !strings.HasPrefix(s.Range, "[Executor]") {
			return "hook"
		}
	}
	return ""
}

// StepNS is the wall time of a step that counts in times, without pauses in or after a few of the steps, such as for
// lack of requests: steps of 10, 10 and 90 ns, in which no kernel runs for 1, 1 and 81, take 10. It is undefined where
// no step has a wall time.
func (t *Trace) StepNS(times *imbalance.Times) router.Number {
	counted := imbalance.Places(times.StepsOf(imbalance.Counts))
	var busy, idle []float64
	for _, s := range t.StepTimes {
		if _, counts := counted[int(s.Step)]; counts && s.WallNS.Defined() {
			busy, idle = append(busy, float64(s.WallNS-s.NoKernelNS)), append(idle, float64(s.NoKernelNS))
		}
	}
	if len(idle) == 0 {
		return router.Undefined()
	}
	return router.Number(stat.Mean(busy, nil) + stats.Median(idle))
}
