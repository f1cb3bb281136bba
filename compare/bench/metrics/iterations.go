package metrics

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// step is a row of an iteration log: what an engine ran, and how long that took. What the row does not say
// is undefined.
type step struct {
	iter     router.OptInt // the log's own number, or the position where it has none
	requests router.OptInt // scheduled, or decode tokens where it says no more
	prompt   router.OptInt // prompt tokens; 0 is a pure decode step
	ms       router.Number // by the log's clock
}

// iterationLog is the rows of engines' iteration logs.
type iterationLog struct {
	clock string                   // of the whole log: the best that its first row has
	ranks map[router.OptInt][]step // by rank
}

// Two clocks need care. A row of TensorRT-LLM prints the device time of the row before it
// (tensorrt_llm/_torch/pyexecutor/py_executor.py), and SGLang's line prints the throughput since the last line.
const (
	deviceStep     = "device_step"
	decodeInterval = "decode_interval"
	decodeSpeed    = "gen throughput"
)

// rowTimes are the names of the times in rows, the best clock first. Under TensorRT-LLM's overlap scheduler
// iterLatencyMS spans about two loops.
var rowTimes = []struct{ path, clock string }{
	{"gpuForwardTimeMS", "gpu_forward"}, {"prevDeviceStepTimeMS", deviceStep}, {"prev_device_step_time", deviceStep},
	{"hostStepTimeMS", "host_step"}, {"host_step_time", "host_step"}, {"elapsed_time", "elapsed"},
	{"iterLatencyMS", "iteration"}, {decodeSpeed, decodeInterval},
}

// add takes a row into the log.
func (l *iterationLog) add(d *document) {
	s := step{
		iter: d.count("iter", "Iteration Counter"),
		requests: d.count("inflightBatchingStats/numScheduledRequests", "num_scheduled_requests", "Scheduled Requests",
			"#running-req", "inflightBatchingStats/numGenRequests", "states/num_generation_tokens", "Active Request Count"),
		prompt: d.count("inflightBatchingStats/numCtxTokens", "states/num_ctx_tokens", "Total Context Tokens",
			"Context Requests"),
		ms: router.Undefined(),
	}
	rank := d.count("global_rank", "rank", "attentionDpRank")
	if !rank.Defined() {
		rank = d.rank
	}
	for _, t := range rowTimes {
		if d.has(t.path) && (len(l.ranks) == 0 && l.clock == "" || l.clock == t.clock) {
			l.clock = t.clock
			ms, timed := d.of(t.path).(float64)
			v, wrong := convert(router.Number(ms), d.values[t.path].unit, "ms")
			if timed && (wrong == "" || t.path == decodeSpeed) {
				s.ms = v
			}
		}
	}
	if l.clock == decodeInterval { // lines have no number, and hold decode steps alone
		accepted, _ := d.of("accept len").(float64)
		s.iter, s.prompt = router.OptInt(len(l.ranks[rank])), 0
		s.ms = 1e3 * router.Number(s.requests) / s.ms * router.Number(max(1, accepted))
	}
	if rows := l.ranks[rank]; l.clock == deviceStep {
		if last := len(rows) - 1; last >= 0 && rows[last].iter+1 == s.iter {
			rows[last].ms = s.ms
		}
		s.ms = router.Undefined()
	}
	if s.iter.Defined() {
		l.ranks[rank] = append(l.ranks[rank], s)
	}
}

// steady are a rank's full steps after its warm-up. A full step is a pure decode step with the most requests. The
// first ten of them, or the first tenth where they are fewer than 100, are warm-up: in them kernels are still being
// chosen, graphs captured and clocks raised.
//
//	requests 3, 4, … 4 (21 times), 2  → the last 19 of the steps with 4
func steady(rows []step) (full []step) {
	most := router.OptInt(1)
	for _, s := range rows {
		if s.prompt == 0 && s.requests > most {
			full, most = nil, s.requests
		}
		if s.prompt == 0 && s.requests == most {
			full = append(full, s)
		}
	}
	return full[min(10, len(full)/10):]
}

// summary gives the step time of the steady steps. Ranks of attention data parallelism run batches of their own
// in step with each other, so an iteration takes as long as its slowest rank.
func (l *iterationLog) summary() (out Result) {
	out.Format = iterations.Format
	slowest, all, used, full := map[router.OptInt]float64{}, 0, 0, []step(nil)
	for _, rank := range slices.Sorted(maps.Keys(l.ranks)) {
		full = steady(l.ranks[rank])
		for _, s := range full {
			if s.ms.Defined() {
				slowest[s.iter] = max(slowest[s.iter], float64(s.ms))
				used++
			}
		}
		all += len(l.ranks[rank])
	}
	if out.Attention = l.uneven(); used == 0 {
		out.warn("the iteration log has no times of steady decode steps")
		if len(full) > 0 && l.clock != decodeInterval { // whose lines have no numbers
			at := full[len(full)/2].iter
			out.warn(fmt.Sprintf("worth recording with moebalance profile --iterations: %d to %d (full decode)", at, at+9))
		}
		return out
	}
	what := l.clock + " of steady full decode batches"
	if len(l.ranks) > 1 {
		what += ", slowest rank of each iteration"
	}
	times := slices.Sorted(maps.Values(slowest))
	mean, half := iterations.metric("step_time_mean"), iterations.metric("step_time_p50")
	mean.Definition, half.Definition = "step_time_mean/mean "+what, "step_time_p50/median "+what
	out.Metrics = []Metric{{mean, router.Number(stat.Mean(times, nil)), 0}, {half, router.Number(stats.Median(times)), 0}}
	out.warn(fmt.Sprintf("step time is of %d of %s, the steady full decode batches", used,
		quantity.Count(all, "iteration row")))
	return out
}

// uneven is how uneven attention is over data-parallel ranks by their tokens: Σ max / Σ mean − 1 over the iterations
// that all ranks logged, 0 where one rank did.
func (l *iterationLog) uneven() float64 {
	of, most, all := map[router.OptInt][]float64{}, 0.0, 0.0 // tokens of the ranks, by iteration
	for _, rows := range l.ranks {
		for _, s := range rows { // a decoding request is a token
			of[s.iter] = append(of[s.iter], float64(max(s.requests, 0)+max(s.prompt, 0)))
		}
	}
	for _, tokens := range of {
		if len(tokens) == len(l.ranks) {
			most, all = most+slices.Max(tokens)*float64(len(tokens)), all+floats.Sum(tokens)
		}
	}
	return max(0, most/max(all, 1)-1)
}
