package metrics

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// The clocks, best first. Under TensorRT-LLM's overlap scheduler iterLatencyMS
// spans about two loops, and a row prints the device time of the row
// before it (tensorrt_llm/_torch/pyexecutor/py_executor.py).
const (
	gpuForward = "gpu_forward"
	deviceStep = "device_step"
	hostStep   = "host_step"
	elapsed    = "elapsed"
	iteration  = "iteration"
	// of SGLang: the mean decode step between two lines
	decodeInterval = "decode_interval"
)

// rowTimes are the names of the times in the rows of iteration logs, the best clock first.
var rowTimes = []struct{ path, clock string }{
	{"gpuForwardTimeMS", gpuForward},
	{"prevDeviceStepTimeMS", deviceStep},
	{"prev_device_step_time", deviceStep},
	{"hostStepTimeMS", hostStep},
	{"host_step_time", hostStep},
	{"elapsed_time", elapsed},
	{"iterLatencyMS", iteration},
	{decodeSpeed, decodeInterval},
}

// decodeSpeed is the throughput of SGLang's line about every 40th decode step, over the steps since the last line.
const decodeSpeed = "gen throughput (token/s)"

// rowNumbers are the names of what else rows say, the first that is there: of TensorRT-LLM's
// --iteration_log and /metrics, of print_iter_log, of --log_iteration_data, and of SGLang.
var rowNumbers = [...][]string{
	{"iter", "Iteration Counter"},
	{"global_rank", "rank", "attentionDpRank"},
	{"inflightBatchingStats/numScheduledRequests", "num_scheduled_requests", "Scheduled Requests", "#running-req",
		"Decode batch. #running-req"},
	{"inflightBatchingStats/numCtxTokens", "states/num_ctx_tokens", "Total Context Tokens"},
	{"inflightBatchingStats/numGenRequests", "states/num_generation_tokens", "Generation Requests"},
}

// isIteration recognizes a row, an object or a line.
func isIteration(d *document) bool {
	return d.has("iter") && (d.has("iterLatencyMS") || d.has("hostStepTimeMS") || strings.Contains(d.text, "states = {")) ||
		d.has("Iteration Counter", "Active Request Count", "Timestamp") ||
		strings.HasPrefix(d.text, "Decode batch") && strings.Contains(d.text, decodeSpeed)
}

// span is a time in milliseconds: 12.5, "12.5ms" or "0.0125s"; "N/A" and null are undefined.
func span(v any) router.Number {
	text, ok := v.(string)
	if !ok {
		n, _ := number(v)
		return n
	}
	factor := 1e3
	digits, ok := strings.CutSuffix(text, "ms")
	if ok {
		factor = 1
	}
	x, err := strconv.ParseFloat(strings.TrimSuffix(digits, "s"), 64)
	if err != nil || !router.Number(x).Defined() {
		return router.Undefined()
	}
	return router.Number(x * factor)
}

// iterationLog is what a log remembers from row to row.
type iterationLog struct {
	clock string                  // of the whole log: the best that its first row has
	last  map[router.OptInt]int   // by rank: where its last row is in the steps
	rows  map[router.OptInt]int64 // by rank: its lines so far, where they have no number
	gaps  int64                   // iterations that are missing between two rows of a rank
}

// readIteration adds a row to the log.
func readIteration(r *report, doc *document) {
	var numbers [len(rowNumbers)]router.OptInt
	for i, names := range rowNumbers {
		numbers[i] = router.NoID
		for _, name := range slices.Backward(names) {
			if v, ok := r.number(doc, name); ok && v >= 0 && v < 1<<53 {
				numbers[i] = router.OptInt(v)
			}
		}
	}
	s := Step{Iter: int64(numbers[0]), Rank: numbers[1], Requests: numbers[2], ContextTokens: numbers[3],
		GeneratedTokens: numbers[4], TimeMS: router.Undefined()}
	if !s.Rank.Defined() || s.Rank >= 1<<31 {
		s.Rank = router.OptInt(doc.rank)
	}
	if v, ok := r.number(doc, "statsDroppedFrames"); ok && v > 0 {
		r.warn("the engine dropped rows of its statistics: the iteration log has gaps")
	}
	drafts, _ := doc.values["specDecodingStats/numDraftTokens"].(float64)
	accepted, _ := doc.values["accept len"].(float64)
	if drafts > 0 || accepted > 1 {
		r.warn(speculation)
	}
	if r.log == nil {
		r.log = &iterationLog{last: map[router.OptInt]int{}, rows: map[router.OptInt]int64{}}
		for _, t := range slices.Backward(rowTimes) {
			if doc.has(t.path) {
				r.log.clock = t.clock
			}
		}
	}
	for _, t := range rowTimes {
		if t.clock == r.log.clock && doc.has(t.path) {
			s.TimeMS = span(doc.values[t.path])
		}
	}
	if r.log.clock == decodeInterval { // lines have no number, and hold decode steps alone
		s.Iter, s.ContextTokens = r.log.rows[s.Rank], 0
		r.log.rows[s.Rank]++
		s.TimeMS = 1e3 * router.Number(s.Requests) / s.TimeMS * router.Number(max(1, accepted))
	}
	if s.Iter < 0 {
		r.warn(fmt.Sprintf("line %d is not used: an iteration row without an iteration number", doc.line))
		return
	}
	r.known, s.Clock = true, r.log.clock
	r.follow(s)
}

// maxRanks bounds what a hostile report can make the parser remember.
const maxRanks = router.MaxExperts

// follow adds a step after the last one of its rank.
func (r *report) follow(s Step) {
	it := r.log
	previous, have := it.last[s.Rank]
	if have && len(r.out.Steps) < maxSteps && s.Iter > r.out.Steps[previous].Iter+1 {
		it.gaps += s.Iter - r.out.Steps[previous].Iter - 1
	}
	if it.clock == deviceStep { // the time is of the row before
		if have && s.Iter == r.out.Steps[previous].Iter+1 {
			r.out.Steps[previous].TimeMS = s.TimeMS
		}
		s.TimeMS = router.Undefined()
	}
	if len(r.out.Steps) < maxSteps && (have || len(it.last) < maxRanks) {
		it.last[s.Rank] = len(r.out.Steps)
	}
	r.step(s)
}

// finishIterations cuts the warm-up and summarizes the rest. Ranks of attention data parallelism run
// batches of their own in step with each other, so an iteration takes as long as its slowest rank.
func finishIterations(r *report) {
	if r.log == nil {
		return
	}
	if r.log.gaps > 0 {
		r.warn("the iteration log lacks " + quantity.Count(r.log.gaps, "iteration") + " between its rows")
	}
	if r.log.clock == iteration {
		r.warn("iterLatencyMS spans about two steps under the overlap scheduler: compare it only with iterLatencyMS")
	}
	slowest := map[int64]router.Number{}
	byRank, requests := map[router.OptInt][]router.Number{}, map[router.OptInt][]router.Number{}
	used := 0
	steady := cutWarmup(r.out.Steps)
	for _, i := range steady {
		if s := r.out.Steps[i]; s.TimeMS.Defined() {
			used++
			slowest[s.Iter] = max(slowest[s.Iter], s.TimeMS)
			byRank[s.Rank] = append(byRank[s.Rank], s.TimeMS)
			if s.Requests.Defined() {
				requests[s.Rank] = append(requests[s.Rank], router.Number(s.Requests))
			}
		}
	}
	if advice := worthRecording(r.out.Steps, steady); advice != "" && r.log.clock == "" {
		r.warn(advice)
	}
	if used == 0 {
		r.warn("the iteration log has no steady decode step after its warm-up")
		return
	}
	what := r.log.clock + " of steady full decode batches"
	if len(byRank) > 1 {
		what += ", slowest rank of each iteration"
		text, _ := byRanks(byRank, " ms")
		r.warn("step time is of the slowest rank of each iteration; means by rank " + text)
		if text, uneven := byRanks(requests, ""); uneven > unevenRequests {
			r.warn(fmt.Sprintf("requests are %s uneven over ranks, whose attention waits for the busiest; means by rank %s",
				quantity.Percent(uneven), text))
		}
	}
	mean, median, _ := summary(slices.Collect(maps.Values(slowest)))
	r.put(0, metricOf("step_time_mean", "", "mean "+what, mean))
	r.put(0, metricOf("step_time_p50", "", "median "+what, median))
	r.warn(fmt.Sprintf("step time is of %d of %s, the steady full decode batches", used,
		quantity.Count(len(r.out.Steps), "iteration row")))
}

// unevenRequests is from where on requests over ranks are called uneven.
const unevenRequests = 0.1

// byRanks lists the mean of each rank, with by how much the largest exceeds the mean of all: 30 and 10 → "0: 30,
// 1: 10" and 0.5.
func byRanks(values map[router.OptInt][]router.Number, unit string) (text string, uneven router.Number) {
	var list []string
	var most, sum router.Number
	for _, rank := range slices.Sorted(maps.Keys(values)) {
		mean, _, _ := summary(values[rank])
		list = append(list, fmt.Sprintf("%d: %s%s", rank, quantity.Digits3(mean), unit))
		most, sum = max(most, mean), sum+mean
	}
	return shortened(list), most*router.Number(len(list))/sum - 1
}

// shortened lists eight at most.
func shortened(list []string) string {
	if len(list) > 8 {
		list = append(list[:8:8], "…")
	}
	return strings.Join(list, ", ")
}

// worthRecording names the iterations that a profile should hold: steady decode steps, and the
// largest prefill.
func worthRecording(steps []Step, steady []int) string {
	prefill := -1
	for i, s := range steps {
		if s.ContextTokens > 0 && (prefill < 0 || s.ContextTokens > steps[prefill].ContextTokens) {
			prefill = i
		}
	}
	var worth []string
	if len(steady) > 0 {
		first := steps[steady[len(steady)/2]].Iter
		worth = append(worth, fmt.Sprintf("%d to %d (full decode)", first, first+9))
	}
	if prefill >= 0 {
		worth = append(worth, fmt.Sprintf("%d (%d prompt tokens)", steps[prefill].Iter, steps[prefill].ContextTokens))
	}
	if len(worth) == 0 {
		return ""
	}
	return "iterations worth recording, with moebalance profile --iterations: " + strings.Join(worth, " and ")
}
