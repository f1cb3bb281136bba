package metrics

import "strings"

// The serving clients: trtllm-serve's benchmark_serving.py and vLLM's "bench
// serve", of which it is a fork, and SGLang's bench_serving. All take
// percentiles as numpy does.
const (
	servingFormat = "serving"
	servingRule   = "serving client, linear"
	sglangFormat  = "sglang-serving"
	sglangText    = sglangFormat + "/stdout"
	sglangRule    = "sglang client, linear"
	offlineFormat = "sglang-offline" // bench_offline_throughput
)

// servingText is the block under " Serving Benchmark Result ", which all three
// print; SGLang's begins with its backend. Its bench_offline_throughput prints the
// same labels under a title of its own.
var servingText = textFormat{
	name:  servingFormat + "/stdout",
	line:  readServingLine,
	needs: [][]string{{"output_throughput"}, {"request_throughput"}, {"duration"}},
}

var servingLabels = map[string]entry{
	"Successful requests":             {metric: "requests", count: requests},
	"Failed requests":                 {metric: "failed requests", count: failures},
	"Benchmark duration (s)":          {metric: "duration", factor: 1e3},
	"Total input tokens":              {metric: "input tokens", count: inputTokens},
	"Total generated tokens":          {metric: "output tokens", count: outputTokens},
	"Request throughput (req/s)":      {metric: "request_throughput"},
	"Request goodput (req/s)":         {metric: "request_goodput"},
	"Input token throughput (tok/s)":  {metric: "input_throughput"},
	"Output token throughput (tok/s)": {metric: "output_throughput"},
	"Total Token throughput (tok/s)":  {metric: "total_throughput"},
	"Total token throughput (tok/s)":  {metric: "total_throughput"},
	"User throughput (tok/s)":         {metric: "user_throughput"},
}

// servingFamily are the words of "P99 TTFT (ms)".
var servingFamily = map[string]string{
	"TTFT": "ttft", "TPOT": "tpot", "ITL": "itl", "E2EL": "request_latency", "E2E Latency": "request_latency",
}

func readServingLine(rec record, rep *report) {
	if strings.HasPrefix(rec.text, "==") {
		switch strings.Trim(rec.text, "= ") {
		case "Serving Benchmark Result":
			rep.found = true
		case "Offline Throughput Benchmark Result":
			rep.found, rep.format = true, offlineFormat+"/stdout"
		}
		return
	}
	if !rep.found {
		return
	}
	rule := servingRule
	if rep.format == sglangText {
		rule = sglangRule
	}
	if backend, ok := strings.CutPrefix(rec.text, "Backend:"); ok && strings.HasPrefix(strings.TrimSpace(backend), "sglang") {
		rep.format = sglangText
		return
	}
	if rec.label == "" || known(servingLabels, rec, rule, rep) {
		return
	}
	label, ms := strings.CutSuffix(rec.label, " (ms)")
	first, family, two := strings.Cut(label, " ")
	name, used := aggregateName(first)
	if word, ours := servingFamily[family]; ms && two && used && ours {
		entry{metric: word + "_" + name}.take(rec, rule, rec.value, rep)
	}
}

// isServing recognizes the JSON of the trtllm-serve and vLLM clients, isSGLang
// that of SGLang's.
func isServing(o *object) bool {
	return o.has("completed", "request_throughput", "output_throughput", "duration") && !isSGLang(o)
}

// Releases of 2024 give output_throughput alone.
func isSGLang(o *object) bool {
	return o.has("completed", "output_throughput", "duration") && (o.has("total_output_tokens_retokenized") || o.has("mean_e2e_latency_ms") ||
		o.has("input_throughput", "dataset_name"))
}

func isSGLangOffline(o *object) bool {
	return o.has("successful_requests", "total_latency", "output_throughput", "request_throughput")
}

func readSGLangOffline(f fields) {
	f.needMetric("output_throughput", "output_throughput", 1)
	f.needMetric("request_throughput", "request_throughput", 1)
	f.needMetric("total_latency", "duration", 1e3)
	f.metric("input_throughput", "input_throughput", 1)
	f.metric("total_throughput", "total_throughput", 1)
	f.work("successful_requests", "requests", &f.rep.work.Requests)
	f.work("total_input_tokens", "input tokens", &f.rep.work.InputTokens)
	f.work("total_output_tokens", "output tokens", &f.rep.work.OutputTokens)
}

func readServing(f fields) {
	f.serving(map[string]string{"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "request_latency"})
	f.metric("total_token_throughput", "total_throughput", 1)
	f.metric("user_throughput", "user_throughput", 1)
	// trtllm-serve's key really ends in a colon.
	f.metric("request_goodput:", "request_goodput", 1)
	f.metric("request_goodput", "request_goodput", 1)
	f.work("failed", "failed requests", &f.rep.work.Errors)
	if asked, ok := f.number("num_prompts"); ok && !f.rep.work.Errors.Known && f.rep.work.Requests.Known {
		f.rep.work.Errors = Exactly(max(0, int64(asked)-f.rep.work.Requests.N))
	}
}

func readSGLang(f fields) {
	f.serving(map[string]string{"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e_latency": "request_latency"})
	f.metric("input_throughput", "input_throughput", 1)
	f.metric("total_throughput", "total_throughput", 1)
	if accepted, ok := f.number("accept_length"); ok && accepted > 1 {
		f.rep.warn(speculation)
	}
}

// serving reads what the clients have in common: totals, and keys such as
// "p99_ttft_ms".
func (f fields) serving(families map[string]string) {
	f.needMetric("output_throughput", "output_throughput", 1)
	f.metric("request_throughput", "request_throughput", 1)
	f.needMetric("duration", "duration", 1e3)
	f.work("completed", "requests", &f.rep.work.Requests)
	f.work("total_input_tokens", "input tokens", &f.rep.work.InputTokens)
	f.work("total_output_tokens", "output tokens", &f.rep.work.OutputTokens)
	for _, key := range f.o.keys {
		middle, ok := strings.CutSuffix(key, "_ms")
		first, family, two := strings.Cut(middle, "_")
		name, used := aggregateName(first)
		if word, ours := families[family]; ok && two && used && ours {
			f.metric(key, word+"_"+name, 1)
		}
	}
}
