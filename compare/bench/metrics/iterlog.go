package metrics

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// iterationFormat is an engine's iteration log: TensorRT-LLM's --iteration_log
// (one Python dict per line), and its lines under print_iter_log.
const iterationFormat = "iteration-log"

// The clocks, best first. Under TensorRT-LLM's overlap scheduler iterLatencyMS
// spans about two loops, and the device time a row prints is that of the row
// before it (tensorrt_llm/_torch/pyexecutor/py_executor.py).
const (
	gpuForward = "gpu_forward"
	deviceStep = "device_step"
	hostStep   = "host_step"
	elapsed    = "elapsed"
	iteration  = "iteration"
)

// clocks are all of them in that order, clockOf by the names of the times in rows.
var (
	clocks  = []string{gpuForward, deviceStep, hostStep, elapsed, iteration}
	clockOf = map[string]string{
		"gpuForwardTimeMS":      gpuForward,
		"prevDeviceStepTimeMS":  deviceStep,
		"prev_device_step_time": deviceStep,
		"hostStepTimeMS":        hostStep,
		"host_step_time":        hostStep,
		"elapsed_time":          elapsed,
		"iterLatencyMS":         iteration,
	}
)

// row is one line of an iteration log before its time is chosen.
type row struct {
	step  Step
	times map[string]router.Number // by clock; undefined for "N/A" and null
}

// iterationLog is what a log remembers from row to row.
type iterationLog struct {
	clock string                // of the whole log: the best that its first row has
	last  map[router.OptInt]int // by rank: where its last row is in the steps
	gaps  int64                 // iterations that are missing between two rows of a rank
}

// row adds a row to the log.
func (rep *report) row(r row) {
	if rep.log == nil {
		rep.log = &iterationLog{clock: r.bestClock(), last: map[router.OptInt]int{}}
	}
	it := rep.log
	rep.found = true
	r.step.Clock, r.step.TimeMS = it.clock, router.Undefined()
	if v, ok := r.times[it.clock]; ok {
		r.step.TimeMS = v
	}
	previous, have := it.last[r.step.Rank]
	if have && len(rep.steps) < maxSteps && r.step.Iter > rep.steps[previous].Iter+1 {
		it.gaps += r.step.Iter - rep.steps[previous].Iter - 1
	}
	if it.clock == deviceStep { // the time is that of the row before
		if have && r.step.Iter == rep.steps[previous].Iter+1 {
			rep.steps[previous].TimeMS = r.step.TimeMS
		}
		r.step.TimeMS = router.Undefined()
	}
	if len(rep.steps) < maxSteps && (have || len(it.last) < maxRanks) {
		it.last[r.step.Rank] = len(rep.steps)
	}
	rep.step(r.step)
}

// bestClock is the clock of a row's best time; "" without any.
func (r row) bestClock() string {
	for _, clock := range clocks {
		if _, ok := r.times[clock]; ok {
			return clock
		}
	}
	return ""
}

// maxRanks bounds what a hostile log can make the parser remember.
const maxRanks = 1 << 16

// finishIterations cuts the warm-up and summarizes the rest.
func finishIterations(rep *report) {
	it := rep.log
	if it.gaps > 0 {
		rep.warn("the iteration log lacks " + quantity.Count(it.gaps, "iteration") + " between its rows")
	}
	if it.clock == iteration {
		rep.warn("iterLatencyMS spans about two steps under the overlap scheduler: compare it only with iterLatencyMS")
	}
	var kept []router.Number
	for _, i := range cutWarmup(rep.steps) {
		if rep.steps[i].TimeMS.Defined() {
			kept = append(kept, rep.steps[i].TimeMS)
		}
	}
	if len(kept) == 0 {
		rep.warn("the iteration log has no steady decode step after its warm-up")
		return
	}
	mean, median, _ := summary(kept)
	what := it.clock + " of steady full decode batches"
	rep.metric(0, metricOf("step_time_mean", "", "mean "+what, mean))
	rep.metric(0, metricOf("step_time_p50", "", "median "+what, median))
	rep.warn(fmt.Sprintf("step time is of %d of %s, the steady full decode batches", len(kept),
		quantity.Count(len(rep.steps), "iteration row")))
}

// isIterationDict recognizes a row of --iteration_log and of /metrics.
func isIterationDict(o *object) bool {
	return o.has("iter") && (o.has("iterLatencyMS") || o.has("hostStepTimeMS"))
}

func readIterationDict(f fields) {
	r := row{times: map[string]router.Number{}, step: Step{
		Iter: f.whole("iter"), Rank: router.NoID,
		Requests:        f.stated("inflightBatchingStats/numScheduledRequests"),
		ContextTokens:   f.stated("inflightBatchingStats/numCtxTokens"),
		GeneratedTokens: f.stated("inflightBatchingStats/numGenRequests"),
	}}
	for _, key := range []string{"attentionDpRank", "rank"} {
		if v, ok := f.number(key); ok && v >= 0 && v < 1<<31 {
			r.step.Rank = router.OptInt(v)
		}
	}
	for _, key := range f.o.keys {
		if clock := clockOf[key]; clock != "" {
			r.times[clock], _ = f.number(key)
		}
	}
	if v, ok := f.number("statsDroppedFrames"); ok && v > 0 {
		f.rep.warn("the engine dropped rows of its statistics: the iteration log has gaps")
	}
	if drafts, ok := f.number("specDecodingStats/numDraftTokens"); ok && drafts > 0 {
		f.rep.warn(speculation)
	}
	f.rep.row(r)
}

// iterationText are the lines of print_iter_log, of which there are four
// layouts. They are read by key: between "iter = " and "states = " as
// "key = value" or "key: value", and the states as a Python dict of integers.
var iterationText = textFormat{name: iterationFormat, line: iterationLine, finish: finishIterations}

func iterationLine(rec record, rep *report) (label string, v float64) {
	at := strings.Index(rec.text, "iter = ")
	states := strings.Index(rec.text, "states = {")
	if at < 0 || states < at {
		return "", 0
	}
	r := row{step: Step{Iter: -1, Rank: router.OptInt(rec.rank), Requests: router.NoID, ContextTokens: router.NoID,
		GeneratedTokens: router.NoID}, times: map[string]router.Number{}}
	for part := range strings.SplitSeq(rec.text[at:states], ", ") {
		key, value, ok := strings.Cut(part, " = ")
		if !ok {
			key, value, _ = strings.Cut(part, ": ")
		}
		r.head(strings.TrimSpace(key), strings.TrimSpace(value))
	}
	for part := range strings.SplitSeq(strings.Trim(rec.text[states+len("states = "):], "{} "), ", ") {
		key, value, _ := strings.Cut(part, ": ")
		switch strings.Trim(key, "'") {
		case "num_ctx_tokens":
			r.step.ContextTokens = wholeText(value)
		case "num_generation_tokens":
			r.step.GeneratedTokens = wholeText(value)
		}
	}
	if r.step.Iter < 0 {
		rep.warn(fmt.Sprintf("line %d is not used: an iteration row without an iteration number", rec.line))
		return "", 0
	}
	rep.row(r)
	return "", 0
}

// head takes one of the pairs before the states.
func (r *row) head(key, value string) {
	switch key {
	case "iter":
		r.step.Iter = int64(wholeText(value))
	case "global_rank":
		if n := wholeText(value); n >= 0 && n < 1<<31 {
			r.step.Rank = n
		}
	case "num_scheduled_requests":
		r.step.Requests = wholeText(value)
	default:
		if clock := clockOf[key]; clock != "" {
			r.times[clock] = span(value)
		}
	}
}

// wholeText reads a whole number that is not negative; anything else is undefined.
func wholeText(s string) router.OptInt {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return router.NoID
	}
	return router.OptInt(n)
}

// span reads "12.5ms" or "0.0125s" in milliseconds; "N/A" is undefined.
func span(s string) router.Number {
	factor := 1.0
	number, ok := strings.CutSuffix(s, "ms")
	if !ok {
		if number, ok = strings.CutSuffix(s, "s"); ok {
			factor = 1e3
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !router.Number(v).Defined() {
		return router.Undefined()
	}
	return router.Number(v * factor)
}
