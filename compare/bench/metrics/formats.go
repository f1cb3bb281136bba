package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// The formats that others ask for by name. The serving clients are trtllm-serve's
// benchmark_serving.py and vLLM's "bench serve", of which it is a fork, and SGLang's bench_serving.
const (
	workloadFormat  = "moebalance-workload"
	iterationFormat = "iteration-log"
	servingFormat   = "serving"
	sglangFormat    = "sglang-serving"
	aiperfFormat    = "aiperf"

	oneBatchServerFormat = "sglang-one-batch-server/stdout"

	servingTitle = "Serving Benchmark Result" // of what serving clients print
)

// How tools take percentiles. trtllm-bench does not interpolate, so its p99 is the maximum below 101
// requests (tensorrt_llm/bench/dataclasses/general.py); the others do as numpy does.
const (
	trtllmRule  = "trtllm-bench, sorted[floor(n·q)]"
	servingRule = "serving client, linear"
	sglangRule  = "sglang client, linear"
	vllmRule    = "vllm bench latency, linear"
)

const afterLastToken = "generated tokens over the time after the last first token"

var wholeRun = []string{"output_throughput", "request_throughput", "duration"}

// formats are all layouts, objects and rows in the order they are tried: the first that fits takes the
// document. A printed line is offered to every printed report.
var formats = withPatterns(slices.Concat(objectFormats, printedFormats))

// withPatterns fills in which paths of the formats have "{stat}".
func withPatterns(formats []*format) []*format {
	for _, f := range formats {
		for _, path := range slices.Sorted(maps.Keys(f.means)) {
			if strings.Contains(path, "{stat}") {
				f.patterns = append(f.patterns, path)
			}
		}
	}
	return formats
}

// has recognizes documents with all the paths.
func has(paths ...string) func(*document) bool {
	return func(d *document) bool { return d.has(paths...) }
}

var objectFormats = []*format{
	{name: workloadFormat, rule: workloadFormat + ", linear", needs: []string{"token_throughput"}, also: readWorkload,
		is: has("perfect_router", "ranks", "tokens_per_rank", "tokens_per_second"),
		means: map[string]meaning{"requests": requests, "input_tokens": inputTokens, "ranks": ranks,
			"expert_floor": expertFloor, "rank_floor": rankFloor}},
	{name: iterationFormat, is: isIteration, also: readIteration, finish: finishIterations},
	{name: "trtllm-bench/report-json", rule: trtllmRule, needs: wholeRun, also: readTRTLLMReport,
		sizes: [2]string{"dataset/isl_stats", "dataset/osl_stats"}, is: func(d *document) bool {
			return d.has("performance", "request_info", "engine") || d.has("performance", "world_info")
		},
		means: map[string]meaning{
			"performance/system_output_throughput_tok_s":        metric("output_throughput"),
			"performance/request_throughput_req_s":              metric("request_throughput"),
			"performance/total_latency_ms":                      metric("duration"),
			"performance/system_total_throughput_tok_s":         metric("total_throughput"),
			"performance/output_throughput_per_user_tok_s":      metric("user_throughput"),
			"performance/output_throughput_per_gpu_tok_s":       metric("gpu_throughput"),
			"performance/avg_request_latency_ms":                metric("request_latency_mean"),
			"performance/request_latency_percentiles_ms/{stat}": metric("request_latency"),
			"streaming_metrics/token_output_speed_tok_s":        metric("user_speed"),
			"streaming_metrics/avg_ttft_ms":                     metric("ttft_mean"),
			"streaming_metrics/avg_tpot_ms":                     metric("tpot_mean"),
			"streaming_metrics/tpot_percentiles/{stat}":         metric("tpot"),
			"streaming_metrics/ttft_percentiles/{stat}":         metric("ttft"),
			"streaming_metrics/gen_tps_percentiles/{stat}":      metric("user_speed"),
			"energy/total_energy_j":                             metric("energy"),
			"energy/average_gpu_power":                          metric("gpu_power"),
			"energy/output_tps_per_w":                           metric("output_per_watt"),
			"request_info/num_requests":                         requests,
			"request_info/avg_input_length":                     meanInput,
			"request_info/avg_output_length":                    meanOutput,
			"world_info/ep_size":                                ranks,
		}},
	// Releases of 2024 give output_throughput alone.
	{name: sglangFormat + "/json", rule: sglangRule, needs: []string{"output_throughput", "duration"}, also: readClient,
		sizes: clientSizes, means: clientMeans, is: func(d *document) bool {
			return d.has("completed", "output_throughput", "duration") && (d.has("total_output_tokens_retokenized") ||
				d.has("mean_e2e_latency_ms") || d.has("input_throughput", "dataset_name"))
		}},
	// bench_offline_throughput
	{name: "sglang-offline/json", needs: wholeRun,
		is: has("successful_requests", "total_latency", "output_throughput", "request_throughput"),
		means: map[string]meaning{"output_throughput": metric("output_throughput"),
			"request_throughput": metric("request_throughput"), "total_latency": seconds("duration"),
			"input_throughput": metric("input_throughput"), "total_throughput": metric("total_throughput"),
			"successful_requests": requests, "total_input_tokens": inputTokens, "total_output_tokens": outputTokens}},
	{name: servingFormat + "/json", rule: servingRule, needs: []string{"output_throughput", "duration"}, also: readClient,
		sizes: clientSizes, means: clientMeans,
		is: has("completed", "request_throughput", "output_throughput", "duration")},
	// tokens_per_second counts prompt and generated tokens; many releases print the generated ones alone only on stdout.
	{name: "vllm-throughput/json", needs: []string{"total_throughput", "request_throughput", "duration"},
		is: has("elapsed_time", "num_requests", "total_num_tokens", "requests_per_second", "tokens_per_second"),
		means: map[string]meaning{"tokens_per_second": metric("total_throughput"),
			"requests_per_second": metric("request_throughput"), "elapsed_time": seconds("duration"),
			"num_requests": requests, "total_input_tokens": inputTokens, "total_output_tokens": outputTokens,
			"output_tokens_per_second": metric("output_throughput")},
		also: func(r *report, doc *document) {
			if _, ok := doc.get("output_tokens_per_second"); !ok {
				r.warn("total_throughput (tokens_per_second) counts prompt tokens too; pass the stdout of vllm bench " +
					"throughput for output_throughput")
			}
		}},
	{name: "vllm-latency/json", rule: vllmRule, needs: []string{"batch_latency_mean"},
		is: has("avg_latency", "latencies", "percentiles"),
		means: map[string]meaning{"avg_latency": seconds("batch_latency_mean"),
			"percentiles/{stat}": seconds("batch_latency")}},
	// AIPerf and GenAI-Perf, its predecessor, share names and units but are two programs.
	exportOf("aiperf, linear", func(d *document) bool { return isAIPerf(d) && (d.has("schema_version") || d.has("records")) }),
	exportOf("genai-perf, linear", isAIPerf),
	// sglang bench_one_batch and bench_one_batch_server, one line per batch of equal requests
	{name: "sglang-one-batch/json", needs: []string{"total_throughput"},
		is: has("batch_size", "input_len", "output_len", "overall_throughput"),
		means: map[string]meaning{
			"prefill_latency":          seconds("prefill_latency_mean"),
			"prefill_throughput":       metric("prefill_throughput"),
			"median_decode_latency":    seconds("decode_latency_p50"),
			"median_decode_throughput": ownMetric("decode_throughput", "generated tokens over the median decode step"),
			"total_latency":            seconds("batch_latency_mean"),
			"latency":                  seconds("batch_latency_mean"),
			"input_throughput":         metric("prefill_throughput"),
			"output_throughput":        ownMetric("output_throughput", afterLastToken),
			"overall_throughput":       metric("total_throughput"),
			"last_ttft":                seconds("ttft_max"),
			"batch_size":               requests,
			"input_len":                meanInput,
			"output_len":               meanOutput,
		}},
	{name: "trtllm-bench-moe/json", needs: []string{"moe_latency"}, also: readMoE,
		is:    func(d *document) bool { return d.values["benchmark"] == "bench_moe" && d.has("results") },
		means: map[string]meaning{"results/0/latency_ms/score": metric("moe_latency")}},
}

// clientMeans are the numbers in the JSON of all serving clients; none has all of them.
var clientMeans = map[string]meaning{
	"output_throughput":        metric("output_throughput"),
	"request_throughput":       metric("request_throughput"),
	"duration":                 seconds("duration"),
	"completed":                requests,
	"total_input_tokens":       inputTokens,
	"total_output_tokens":      outputTokens,
	"failed":                   failures,
	"input_throughput":         metric("input_throughput"),
	"total_throughput":         metric("total_throughput"),
	"total_token_throughput":   metric("total_throughput"),
	"user_throughput":          metric("user_throughput"),
	"request_goodput:":         metric("request_goodput"), // trtllm-serve's key really ends in a colon
	"request_goodput":          metric("request_goodput"),
	"energy/total_energy_j":    metric("energy"),
	"energy/total_gpu_power_w": metric("gpu_power"),
	"energy/output_tps_per_w":  metric("output_per_watt"),
	"{stat}_ttft_ms":           metric("ttft"),
	"{stat}_tpot_ms":           metric("tpot"),
	"{stat}_itl_ms":            metric("itl"),
	"{stat}_e2el_ms":           metric("request_latency"),
	"{stat}_e2e_latency_ms":    metric("request_latency"),
}

var clientSizes = [2]string{"input_lens", "output_lens"}

// exportOf is the format of the exports of AIPerf and GenAI-Perf. Their inter token latency is what others call
// time per output token (one mean per request); their inter chunk latency is every gap.
func exportOf(rule string, is func(*document) bool) *format {
	f := &format{name: aiperfFormat, rule: rule, is: is, also: readAIPerf, units: true, means: map[string]meaning{},
		sizes: [2]string{"input_sequence_length", "output_sequence_length"}}
	for path, m := range map[string]meaning{
		"output_token_throughput/avg":             metric("output_throughput"),
		"total_token_throughput/avg":              metric("total_throughput"),
		"request_throughput/avg":                  metric("request_throughput"),
		"goodput/avg":                             metric("request_goodput"),
		"benchmark_duration/avg":                  metric("duration"),
		"request_count/avg":                       requests,
		"error_request_count/avg":                 failures,
		"total_isl/avg":                           inputTokens,
		"total_osl/avg":                           outputTokens,
		"input_sequence_length/avg":               meanInput,
		"output_sequence_length/avg":              meanOutput,
		"request_latency/{stat}":                  metric("request_latency"),
		"time_to_first_token/{stat}":              metric("ttft"),
		"ttft/{stat}":                             metric("ttft"),
		"inter_token_latency/{stat}":              metric("tpot"),
		"inter_chunk_latency/{stat}":              metric("itl"),
		"output_token_throughput_per_user/{stat}": metric("user_speed"),
	} {
		f.means[path], f.means["records/"+path] = m, m // releases of 2025 hold the metrics in "records"
	}
	return f
}

// printedFormats are the reports that tools print; for labels see document.readLabels.
var printedFormats = []*format{
	// trtllm-bench, in three generations of labels (tensorrt_llm/bench/dataclasses/reporting.py and its predecessors):
	//
	//	a  Token Throughput (tokens/sec)           about 0.12 to 0.17
	//	b  Total Output Throughput (tokens/sec)    about 0.18 and 0.19
	//	c  … and Per User Output Speed (tps/user)  0.20 and later
	{name: "trtllm-bench/stdout", rule: trtllmRule, needs: wholeRun, finish: func(r *report) {
		r.name += "-" + cmp.Or(r.since, "a")
	}, also: func(r *report, doc *document) {
		if strings.HasPrefix(doc.text, "= DECODING STATISTICS") {
			r.warn(speculation)
		}
		if model, ok := strings.CutPrefix(doc.text, "Model:"); ok {
			r.set("model", strings.TrimSpace(model))
		}
	}, means: map[string]meaning{
		"Token Throughput (tokens/sec)":                    anchor("output_throughput", ""),
		"Total Output Throughput (tokens/sec)":             anchor("output_throughput", "b"),
		"Total Token Throughput (tokens/sec)":              anchor("total_throughput", "b"),
		"Request Throughput (req/sec)":                     anchor("request_throughput", ""),
		"Total Latency (ms)":                               metric("duration"),
		"Average request latency (ms)":                     metric("request_latency_mean"),
		"Per User Output Throughput (tokens/sec/user)":     metric("user_throughput"),
		"Per User Output Throughput [w/ ctx] (tps/user)":   {to: "user_throughput", factor: 1, since: "c"},
		"Per GPU Output Throughput (tokens/sec/gpu)":       metric("gpu_throughput"),
		"Per GPU Output Throughput (tps/gpu)":              {to: "gpu_throughput", factor: 1, since: "c"},
		"Average time-to-first-token (ms)":                 metric("ttft_mean"),
		"Average time-to-first-token [TTFT] (ms)":          metric("ttft_mean"),
		"Average inter-token latency (ms)":                 metric("tpot_mean"),
		"Average time-per-output-token [TPOT] (ms)":        metric("tpot_mean"),
		"Per User Output Speed [1/TPOT] (tokens/sec/user)": metric("user_speed"),
		"Per User Output Speed (tps/user)":                 {to: "user_speed", factor: 1, since: "c"},
		"Total Energy (J)":                                 metric("energy"),
		"Average GPU Power (W)":                            metric("gpu_power"),
		"Output Tokens per Second per Watt (tps/W)":        metric("output_per_watt"),
		"Number of requests":                               requests,
		"Average Input Length (tokens)":                    meanInput,
		"Average Output Length (tokens)":                   meanOutput,
		"EP Size":                                          ranks,
		"[TPOT] {stat}":                                    metric("tpot"), // of the second generation on
		"[TTFT] {stat}":                                    metric("ttft"),
		"[Latency] {stat}":                                 metric("request_latency"),
		"[GTPS] {stat}":                                    metric("user_speed"),
	}},
	// The block that all serving clients and SGLang's bench_offline_throughput print.
	{name: servingFormat + "/stdout", rule: servingRule, needs: wholeRun, title: servingTitle,
		means: blockMeans, also: func(r *report, doc *document) {
			switch label, value, _ := strings.Cut(doc.text, ":"); strings.TrimSpace(label) {
			case "Backend":
				if strings.HasPrefix(strings.TrimSpace(value), "sglang") {
					r.name, r.rule = sglangFormat+"/stdout", sglangRule
				}
			case "Max request concurrency", "Maximum request concurrency":
				r.set("max_concurrency", strings.TrimSpace(value))
			case "Traffic request rate", "Request rate configured (RPS)":
				r.set("request_rate", strings.TrimSpace(value))
			}
		}},
	{name: "sglang-offline/stdout", rule: sglangRule, needs: wholeRun, title: "Offline Throughput Benchmark Result",
		means: blockMeans},
	{name: "vllm-throughput/stdout", needs: []string{"request_throughput", "total_throughput"},
		means: map[string]meaning{"Total num prompt tokens": inputTokens, "Total num output tokens": outputTokens,
			"Throughput requests/s": anchor("request_throughput", ""), "Throughput tokens/s": metric("total_throughput"),
			"Throughput total tokens/s": metric("total_throughput"), "Throughput output tokens/s": metric("output_throughput")}},
	{name: "vllm-latency/stdout", rule: vllmRule, needs: []string{"batch_latency_mean"}, means: map[string]meaning{
		"Avg latency seconds":                {to: "batch_latency_mean", factor: 1e3, anchor: true},
		"{stat}% percentile latency seconds": {to: "batch_latency", factor: 1e3, anchor: true}}},
	// sglang bench_one_batch; the lines of its warm-up come first, under a title of their own
	{name: "sglang-one-batch/stdout", needs: []string{"total_throughput"}, title: "Benchmark ...", means: map[string]meaning{
		"Prefill. latency s":                seconds("prefill_latency_mean"),
		"Prefill. throughput token/s":       metric("prefill_throughput"),
		"Decode. median latency s":          seconds("decode_latency_p50"),
		"Decode. median throughput token/s": ownMetric("decode_throughput", "generated tokens over the median decode step"),
		"Total. latency s":                  seconds("batch_latency_mean"),
		"Total. throughput token/s":         metric("total_throughput"),
	}},
	{name: oneBatchServerFormat, needs: []string{"output_throughput", "batch_latency_mean"},
		gap: [2]string{"Warmup Begin", "Warmup End"}, means: map[string]meaning{
			"#Input tokens":           inputTokens,
			"#Output tokens":          outputTokens,
			"batch size":              requests,
			"latency s":               seconds("batch_latency_mean"),
			"input throughput tok/s":  anchor("prefill_throughput", ""),
			"output throughput tok/s": {to: "output_throughput", factor: 1, own: afterLastToken, anchor: true},
			"last_ttft s":             seconds("ttft_max"),
		}},
}

// blockMeans are the labels under the titles of the serving clients.
var blockMeans = map[string]meaning{
	"Successful requests":             requests,
	"Failed requests":                 failures,
	"Benchmark duration (s)":          seconds("duration"),
	"Total input tokens":              inputTokens,
	"Total generated tokens":          outputTokens,
	"Request throughput (req/s)":      metric("request_throughput"),
	"Request goodput (req/s)":         metric("request_goodput"),
	"Input token throughput (tok/s)":  metric("input_throughput"),
	"Output token throughput (tok/s)": metric("output_throughput"),
	"Total Token throughput (tok/s)":  metric("total_throughput"),
	"Total token throughput (tok/s)":  metric("total_throughput"),
	"User throughput (tok/s)":         metric("user_throughput"),
	"{stat} TTFT (ms)":                metric("ttft"),
	"{stat} TPOT (ms)":                metric("tpot"),
	"{stat} ITL (ms)":                 metric("itl"),
	"{stat} E2EL (ms)":                metric("request_latency"),
	"{stat} E2E Latency (ms)":         metric("request_latency"),
	// trtllm-serve's client, where the server measures energy:
	"Total Energy (J)":                          metric("energy"),
	"Total GPU Power (W)":                       metric("gpu_power"),
	"Output Tokens per Second per Watt (tps/W)": metric("output_per_watt"),
}
