package metrics

import (
	"regexp"
	"strings"
)

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
	name:     servingFormat + "/stdout",
	rule:     servingRule,
	labels:   servingLabels,
	spread:   regexp.MustCompile(`^(?P<stat>\S+) (?P<of>TTFT|TPOT|ITL|E2EL|E2E Latency) \(ms\)$`),
	families: servingFamilies,
	line:     servingLine,
	needs:    []string{"output_throughput", "request_throughput", "duration"},
}

var servingLabels = map[string]labelRule{
	"Successful requests":             requests,
	"Failed requests":                 failures,
	"Benchmark duration (s)":          {metric: "duration", factor: 1e3},
	"Total input tokens":              inputTokens,
	"Total generated tokens":          outputTokens,
	"Request throughput (req/s)":      {metric: "request_throughput"},
	"Request goodput (req/s)":         {metric: "request_goodput"},
	"Input token throughput (tok/s)":  {metric: "input_throughput"},
	"Output token throughput (tok/s)": {metric: "output_throughput"},
	"Total Token throughput (tok/s)":  {metric: "total_throughput"},
	"Total token throughput (tok/s)":  {metric: "total_throughput"},
	"User throughput (tok/s)":         {metric: "user_throughput"},
	// trtllm-serve's client, where the server measures energy:
	"Total Energy (J)":                          {metric: "energy"},
	"Total GPU Power (W)":                       {metric: "gpu_power"},
	"Output Tokens per Second per Watt (tps/W)": {metric: "output_per_watt"},
}

// servingFamilies are the words of the printed labels and of the JSON keys.
var servingFamilies = map[string]string{
	"TTFT": "ttft", "TPOT": "tpot", "ITL": "itl", "E2EL": "request_latency", "E2E Latency": "request_latency",
	"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "request_latency", "e2e_latency": "request_latency",
}

// servingLine returns the labels under the title alone.
func servingLine(rec record, rep *report) (label string, v float64) {
	if strings.HasPrefix(rec.text, "==") {
		switch strings.Trim(rec.text, "= ") {
		case "Serving Benchmark Result":
			rep.found = true
		case "Offline Throughput Benchmark Result":
			rep.found, rep.format = true, offlineFormat+"/stdout"
		}
	}
	if !rep.found {
		return "", 0
	}
	if backend, ok := strings.CutPrefix(rec.text, "Backend:"); ok && strings.HasPrefix(strings.TrimSpace(backend),
		"sglang") {
		rep.format, rep.rule = sglangText, sglangRule
	}
	return rec.label, rec.value
}

// isSGLang recognizes the JSON of SGLang's client. Releases of 2024 give
// output_throughput alone.
func isSGLang(o *object) bool {
	return o.has("completed", "output_throughput", "duration") && (o.has("total_output_tokens_retokenized") ||
		o.has("mean_e2e_latency_ms") ||
		o.has("input_throughput", "dataset_name"))
}

// offlineMembers are the JSON of bench_offline_throughput.
var offlineMembers = []member{
	{"output_throughput", labelRule{metric: "output_throughput"}, true},
	{"request_throughput", labelRule{metric: "request_throughput"}, true},
	{"total_latency", labelRule{metric: "duration", factor: 1e3}, true},
	{"input_throughput", labelRule{metric: "input_throughput"}, false},
	{"total_throughput", labelRule{metric: "total_throughput"}, false},
	{"successful_requests", requests, false},
	{"total_input_tokens", inputTokens, false},
	{"total_output_tokens", outputTokens, false},
}

// servingMembers are the totals in the JSON of all clients; none has all of them.
var servingMembers = []member{
	{"output_throughput", labelRule{metric: "output_throughput"}, true},
	{"request_throughput", labelRule{metric: "request_throughput"}, false},
	{"duration", labelRule{metric: "duration", factor: 1e3}, true},
	{"completed", requests, false},
	{"total_input_tokens", inputTokens, false},
	{"total_output_tokens", outputTokens, false},
	{"failed", failures, false},
	{"input_throughput", labelRule{metric: "input_throughput"}, false},
	{"total_throughput", labelRule{metric: "total_throughput"}, false},
	{"total_token_throughput", labelRule{metric: "total_throughput"}, false},
	{"user_throughput", labelRule{metric: "user_throughput"}, false},
	{"request_goodput:", labelRule{metric: "request_goodput"}, false}, // trtllm-serve's key really ends in a colon
	{"request_goodput", labelRule{metric: "request_goodput"}, false},
	{"energy/total_energy_j", labelRule{metric: "energy"}, false},
	{"energy/total_gpu_power_w", labelRule{metric: "gpu_power"}, false},
	{"energy/output_tps_per_w", labelRule{metric: "output_per_watt"}, false},
}

// servingKey is a statistic in the JSON of a client, such as "p99_ttft_ms".
var servingKey = regexp.MustCompile(`^([^_]+)_(ttft|tpot|itl|e2el|e2e_latency)_ms$`)

// clientTotals reads what the clients have in common.
func (f fields) clientTotals() {
	f.record(servingMembers)
	f.rep.lengths = Lengths{f.lengths("input_lens"), f.lengths("output_lens")}
	for _, key := range f.o.keys {
		m := servingKey.FindStringSubmatch(key)
		if m == nil {
			continue
		}
		if stat, ok := aggregateName(m[1]); ok {
			f.record([]member{{key, labelRule{metric: servingFamilies[m[2]] + "_" + stat}, false}})
		}
	}
}

func readServing(f fields) {
	f.clientTotals()
	if asked, ok := f.number("num_prompts"); ok && !f.rep.work.Errors.Known && f.rep.work.Requests.Known {
		f.rep.work.Errors = Exactly(max(0, int64(asked)-f.rep.work.Requests.N))
	}
}

func readSGLang(f fields) {
	f.clientTotals()
	if accepted, ok := f.number("accept_length"); ok && accepted > 1 {
		f.rep.warn(speculation)
	}
}
