package metrics

import (
	"fmt"
	"math"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// workloadFormat is the JSON line of the built-in workload, and of the H200
// program that recorded the captures: one object per launch.
const workloadFormat = "moebalance-workload"

// processor is the built-in workload's clock of processor time.
const processor = "cpu"

func isWorkload(o *object) bool {
	return o.has("perfect_router", "ranks", "tokens_per_rank", "tokens_per_second")
}

// readWorkload reads
//
//	tokens_per_second       tokens of all ranks per second of timed steps: the primary metric
//	iteration_ms[]          every timed step: mean, median and minimum of the step time
//	clock                   which time that is; absent or "wall" is wall time
//	perfect_router, ranks   the launch's own word on the treatment
//	expert_max_over_mean[], rank_max_over_mean[]   per layer
//	requests, input_tokens  where given: the work done
//
// The H200 program's first_iterations_ms are its warm-up and are not used.
func readWorkload(o *object, line int, t *tally) {
	f := fields{o: o, line: line, t: t, rule: workloadFormat + ", linear"}
	clock := f.clock()
	put := func(name string, v router.Number) {
		m := metricOf(name, f.rule, "", v)
		if clock == processor {
			m.Definition += "; time is processor time: of each phase, that of the rank that used most"
		}
		t.metric(line, m)
	}
	put("token_throughput", f.need("tokens_per_second"))
	if steps, ok := f.list("iteration_ms"); ok && len(steps) > 0 {
		for i, ms := range steps {
			t.step(Step{Iter: int64(i), Rank: router.None, Requests: router.None, ContextTokens: router.None, GeneratedTokens: router.None, TimeMS: ms, Clock: clock})
		}
		mean, median, least := summary(steps)
		put("step_time_mean", mean)
		put("step_time_p50", median)
		put("step_time_min", least)
	}
	f.work("requests", "requests", &t.work.Requests)
	f.work("input_tokens", "input tokens", &t.work.InputTokens)
	t.proof.Ranks = int(f.whole("ranks"))
	t.proof.Perfect, t.proof.Claimed = f.flag("perfect_router"), true
	f.layers()
}

// clock is the clock of a workload's steps.
func (f fields) clock() string {
	switch v, ok := f.value("clock"); {
	case !ok || v == "wall":
		return elapsed
	case v == processor:
		return processor
	default:
		f.wrong("clock", "wall or "+processor, v)
		return ""
	}
}

// layers reads the balance per layer from two lists of one length.
func (f fields) layers() {
	experts, haveExperts := f.list("expert_max_over_mean")
	ranks, haveRanks := f.list("rank_max_over_mean")
	if haveExperts && haveRanks && len(experts) != len(ranks) {
		f.t.fail(fmt.Errorf("%s: line %d: expert_max_over_mean has %d layers and rank_max_over_mean %d", f.t.format, f.line, len(experts), len(ranks)))
		return
	}
	at := func(v []router.Number, i int) router.Number {
		if i < len(v) {
			return v[i]
		}
		return router.Undefined()
	}
	f.t.proof.Layers = nil
	for i := range max(len(experts), len(ranks)) {
		f.t.proof.Layers = append(f.t.proof.Layers, LayerBalance{i, at(experts, i), at(ranks, i)})
	}
}

// summary is the mean, the median (mean of the middle two for an even number)
// and the minimum.
func summary(v []router.Number) (mean, median, least router.Number) {
	sorted := slices.Clone(v)
	slices.SortFunc(sorted, func(a, b router.Number) int {
		switch {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	})
	var sum router.Number
	for _, x := range v {
		if !x.Defined() {
			nan := router.Number(math.NaN())
			return nan, nan, nan
		}
		sum += x
	}
	n := len(sorted)
	return sum / router.Number(n), (sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0]
}
