package metrics

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
	"gonum.org/v1/gonum/stat"
)

// step is a row of an iteration log: what an engine ran, and how long that took. What the row does not say
// is undefined.
type step struct {
	iter      router.OptInt // the log's own number, or the position where it has none
	requests  router.OptInt // scheduled
	prompt    router.OptInt // prompt tokens; 0 is a pure decode step
	generated router.OptInt // decode tokens, draft tokens included
	ms        router.Number // by the log's clock
}

// iterationLog is the rows of a log.
type iterationLog struct {
	clock string                   // of the whole log: the best that its first row has
	ranks map[router.OptInt][]step // by rank
}

// Two clocks of which more is to be known: a row of TensorRT-LLM prints the device time of the row before it
// (tensorrt_llm/_torch/pyexecutor/py_executor.py), and SGLang's line the throughput of decoding since the last line.
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

// rowNumbers are the names of what else rows say, the first that is there.
var rowNumbers = [...][]string{
	{"iter", "Iteration Counter"},
	{"global_rank", "rank", "attentionDpRank"},
	{"inflightBatchingStats/numScheduledRequests", "num_scheduled_requests", "Scheduled Requests", "#running-req"},
	{"inflightBatchingStats/numCtxTokens", "states/num_ctx_tokens", "Total Context Tokens"},
	{"inflightBatchingStats/numGenRequests", "states/num_generation_tokens", "Generation Requests"},
}

// readRow reads a printed row; false where the line is none.
//
//	iter = 7, host_step_time = 12ms, states = {'num_ctx_tokens': 3}  → "iter" 7, …, "states/num_ctx_tokens" 3
//	Decode batch, #running-req: 32, gen throughput (token/s): 1600   → "#running-req" 32, …
func readRow(d *document, line string) bool {
	text, states, of := strings.Cut(line, "states = {")
	if at := strings.Index(text, "iter = "); of && at >= 0 {
		text = text[at:]
		s := scanner{doc: d, text: "{" + states}
		s.value("states")
	} else if text, of = strings.CutPrefix(line, "Decode batch"); !of {
		return false
	}
	readLabels(strings.TrimLeft(text, ".,"), d.set)
	return true
}

// readIteration adds a row to the log.
func readIteration(r *report, d *document) {
	var of [len(rowNumbers)]router.OptInt
	for i, names := range rowNumbers {
		of[i] = router.NoID
		for _, name := range slices.Backward(names) {
			if v, ok := r.number(d, name, true); ok && v >= 0 && v < 1<<53 {
				of[i] = router.OptInt(v)
			}
		}
	}
	s, rank, log := step{of[0], of[2], of[3], of[4], router.Undefined()}, of[1], &r.log
	if !rank.Defined() {
		rank = d.rank
	}
	for _, t := range rowTimes {
		if d.has(t.path) && (log.clock == "" && log.ranks == nil || log.clock == t.clock) {
			s.ms, _ = number(d.of(t.path))
			s.ms, _ = convert(s.ms, d.values[t.path].unit, "ms")
			log.clock = t.clock
		}
	}
	if log.ranks == nil {
		log.ranks = map[router.OptInt][]step{}
	}
	if log.clock == decodeInterval { // lines have no number, and hold decode steps alone
		accepted, _ := d.of("accept len").(float64)
		s.iter, s.prompt = router.OptInt(len(log.ranks[rank])), 0
		s.ms = 1e3 * router.Number(s.requests) / s.ms * router.Number(max(1, accepted))
	}
	if s.iter.Defined() {
		log.ranks[rank] = append(log.ranks[rank], s)
	}
}

// steady are a rank's full steps behind its warm-up. Full are the pure decode steps with the most requests (most
// generated tokens, where a log has no requests); the first ten of them, or the first tenth where they are
// fewer than 100, are warm-up: kernels are still being chosen, graphs captured and clocks raised in them.
func steady(rows []step) (full []step) {
	most := router.OptInt(1)
	for _, s := range rows {
		size := s.requests
		if size <= 0 {
			size = s.generated
		}
		if s.prompt == 0 && size > most {
			full, most = nil, size
		}
		if s.prompt == 0 && size == most {
			full = append(full, s)
		}
	}
	return full[min(10, len(full)/10):]
}

// finishIterations summarizes the steady steps. Ranks of attention data parallelism run batches of their own
// in step with each other, so an iteration takes as long as its slowest rank.
func finishIterations(r *report) {
	slowest, all, used, ranks := map[router.OptInt]float64{}, 0, 0, []string(nil)
	for _, rank := range slices.Sorted(maps.Keys(r.log.ranks)) {
		rows := r.log.ranks[rank]
		for i := range rows {
			if r.log.clock == deviceStep && i+1 < len(rows) && rows[i+1].iter == rows[i].iter+1 {
				rows[i].ms = rows[i+1].ms
			} else if r.log.clock == deviceStep {
				rows[i].ms = router.Undefined()
			}
		}
		var times, requests []float64
		for _, s := range steady(rows) {
			if s.ms.Defined() {
				slowest[s.iter] = max(slowest[s.iter], float64(s.ms))
				times, requests = append(times, float64(s.ms)), append(requests, float64(s.requests))
			}
		}
		if len(times) > 0 && len(ranks) < 8 {
			ranks = append(ranks, fmt.Sprintf("rank %d %s ms for %s requests", rank, quantity.Digits3(stat.Mean(times, nil)),
				quantity.Digits3(stat.Mean(requests, nil))))
		}
		all, used = all+len(rows), used+len(times)
	}
	if used == 0 {
		r.warn(r.log.worthRecording())
		return
	}
	what := r.log.clock + " of steady full decode batches"
	if len(ranks) > 1 {
		what += ", slowest rank of each iteration"
		r.warn("step time is of the slowest rank of each iteration; means: " + strings.Join(ranks, ", "))
	}
	r.format = &format{name: r.name, own: map[string]string{"step_time_mean": "mean " + what, "step_time_p50": "median " + what}}
	times := slices.Sorted(maps.Values(slowest))
	r.put(0, "step_time_mean", router.Number(stat.Mean(times, nil)))
	r.put(0, "step_time_p50", router.Number(stats.Median(times)))
	r.warn(fmt.Sprintf("step time is of %d of %s, the steady full decode batches", used,
		quantity.Count(all, "iteration row")))
}

// worthRecording names the iterations that a profile should hold: steady decode steps, and the
// largest prefill.
func (l *iterationLog) worthRecording() string {
	var decode, prefill step
	for _, rank := range slices.Sorted(maps.Keys(l.ranks)) {
		if full := steady(l.ranks[rank]); len(full) > 0 {
			decode = full[len(full)/2]
		}
		for _, s := range l.ranks[rank] {
			if s.prompt > prefill.prompt {
				prefill = s
			}
		}
	}
	text := "the iteration log has no times of steady decode steps"
	if max(decode.requests, decode.generated) > 0 {
		text += fmt.Sprintf("; worth recording with moebalance profile --iterations: %d to %d (full decode)",
			decode.iter, decode.iter+9)
	}
	if prefill.prompt > 0 {
		text += fmt.Sprintf("; %d (%d prompt tokens)", prefill.iter, prefill.prompt)
	}
	return text
}
