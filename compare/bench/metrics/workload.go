package metrics

import (
	"math"
	"slices"
	"strconv"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
	"gonum.org/v1/gonum/stat"
)

// workloadFormat is the JSON line of the built-in workload, and of the H200
// program that recorded the captures: one object per launch.
const workloadFormat = "moebalance-workload"

// processor is the built-in workload's clock of processor time.
const processor = "cpu"

// readWorkload reads
//
//	tokens_per_second       tokens of all ranks per second of timed steps: the primary metric
//	iteration_ms[]          every timed step: mean, median and minimum of the step time
//	clock                   which time that is; absent or "wall" is wall time
//	perfect_router, ranks   the launch's own word on the treatment
//	expert_max_over_mean[], rank_max_over_mean[]   per layer
//	expert_floor, rank_floor   where given: the least of these that whole slots allow
//	requests, input_tokens  where given: the work done
//
// The H200 program's first_iterations_ms are its warm-up and are not used.
func readWorkload(f fields) {
	clock := f.clock()
	put := func(name string, v router.Number) {
		m := metricOf(name, f.rep.rule, "", v)
		if clock == processor {
			m.Definition += "; time is processor time: of each phase, that of the rank that used most"
		}
		f.rep.metric(f.line, m)
	}
	put("token_throughput", f.need("tokens_per_second"))
	if steps, ok := f.list("iteration_ms"); ok && len(steps) > 0 {
		f.rep.timed(steps, 1, clock)
		mean, median, least := summary(steps)
		put("step_time_mean", mean)
		put("step_time_p50", median)
		put("step_time_min", least)
	}
	f.record([]member{{"requests", requests, false}, {"input_tokens", inputTokens, false}})
	f.rep.proof.Ranks = int(f.whole("ranks"))
	f.rep.proof.Perfect, f.rep.proof.Claimed = f.flag("perfect_router"), true
	f.layers()
	if floor, ok := f.number("expert_floor"); ok {
		f.rep.proof.ExpertFloor = floor
	}
	if floor, ok := f.number("rank_floor"); ok {
		f.rep.proof.RankFloor = floor
	}
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
		f.rep.fail(f.line, input.Error{Expected: quantity.Count(len(experts), "layer") +
			" in rank_max_over_mean as in expert_max_over_mean", Found: strconv.Itoa(len(ranks))})
		return
	}
	at := func(v []router.Number, i int) router.Number {
		if i < len(v) {
			return v[i]
		}
		return router.Undefined()
	}
	f.rep.proof.Layers = nil
	for i := range max(len(experts), len(ranks)) {
		f.rep.proof.Layers = append(f.rep.proof.Layers, LayerBalance{i, at(experts, i), at(ranks, i)})
	}
}

// summary is the mean, the median (mean of the middle two for an even number)
// and the minimum; undefined if one of the numbers is.
func summary(v []router.Number) (mean, median, least router.Number) {
	sorted := make([]float64, len(v))
	for i, x := range v {
		sorted[i] = float64(x)
	}
	slices.Sort(sorted)
	if len(sorted) == 0 || math.IsNaN(sorted[0]) { // NaN comes first
		return router.Undefined(), router.Undefined(), router.Undefined()
	}
	n := len(sorted)
	return router.Number(stat.Mean(sorted, nil)), router.Number((sorted[(n-1)/2] + sorted[n/2]) / 2),
		router.Number(sorted[0])
}
