package metrics

// The serving clients are trtllm-serve's benchmark_serving.py and vLLM's "bench serve", of which it is a
// fork, and SGLang's bench_serving.
const (
	servingFormat = "serving"
	sglangFormat  = "sglang-serving"
	aiperfFormat  = "aiperf"
)

// How tools take percentiles. trtllm-bench does not interpolate, so its p99 is the maximum below 101
// requests (tensorrt_llm/bench/dataclasses/general.py); the others do as numpy does.
const (
	trtllmRule  = "trtllm-bench, sorted[floor(n·q)]"
	servingRule = "serving client, linear"
	sglangRule  = "sglang client, linear"
	vllmRule    = "vllm bench latency, linear"
)

var (
	wholeRun  = []string{"output_throughput", "request_throughput", "duration"}
	clientRun = []string{"output_throughput", "duration"}
)

// iterations are the rows of engines' iteration logs, objects or lines: of TensorRT-LLM's --iteration_log and /metrics,
// of print_iter_log, of --log_iteration_data, and of SGLang.
var iterations = &format{name: "iteration-log", also: readIteration, finish: finishIterations,
	is: [][]string{{"iter", "iterLatencyMS"}, {"iter", "hostStepTimeMS"}, {"iter", "states/num_ctx_tokens"},
		{"Iteration Counter", "Active Request Count", "Timestamp"}, {decodeSpeed}}}

// objectFormats are the layouts of objects, in the order they are tried: the first that fits takes the object.
var objectFormats = []*format{
	iterations,
	{name: "moebalance-workload", rule: "moebalance-workload, linear", needs: []string{"token_throughput"},
		is:    [][]string{{"perfect_router", "ranks", "tokens_per_rank", "tokens_per_second"}},
		words: []string{requests, inputTokens, ranks, expertFloor, rankFloor}, also: readWorkload},
	{name: "trtllm-bench/report-json", rule: trtllmRule, needs: wholeRun,
		is: [][]string{{"performance", "request_info", "engine"}, {"performance", "world_info"}},
		means: map[string]string{
			"performance/system_output_throughput_tok_s":   "output_throughput",
			"performance/request_throughput_req_s":         "request_throughput",
			"performance/total_latency_ms":                 "duration",
			"performance/system_total_throughput_tok_s":    "total_throughput",
			"performance/output_throughput_per_user_tok_s": "user_throughput",
			"performance/output_throughput_per_gpu_tok_s":  "gpu_throughput",
			"performance/avg_request_latency_ms":           "request_latency_mean",
			"streaming_metrics/token_output_speed_tok_s":   "user_speed",
			"streaming_metrics/avg_ttft_ms":                "ttft_mean",
			"streaming_metrics/avg_tpot_ms":                "tpot_mean",
			"request_info/num_requests":                    requests,
			"request_info/avg_input_length":                meanInput,
			"request_info/avg_output_length":               meanOutput,
			"world_info/ep_size":                           ranks,
		}, stats: map[string]string{
			"performance/request_latency_percentiles_ms/{stat}": "request_latency",
			"streaming_metrics/tpot_percentiles/{stat}":         "tpot",
			"streaming_metrics/ttft_percentiles/{stat}":         "ttft",
			"streaming_metrics/gen_tps_percentiles/{stat}":      "user_speed",
		}},
	// Releases of 2024 give output_throughput alone.
	{name: sglangFormat + "/json", rule: sglangRule, needs: clientRun, means: clientMeans, words: clientWords,
		stats: clientStats, also: readLengths, is: [][]string{
			{"completed", "output_throughput", "duration", "total_output_tokens_retokenized"},
			{"completed", "output_throughput", "duration", "mean_e2e_latency_ms"},
			{"completed", "output_throughput", "duration", "input_throughput", "dataset_name"}}},
	{name: servingFormat + "/json", rule: servingRule, needs: clientRun, means: clientMeans, words: clientWords,
		stats: clientStats, also: readClient,
		is: [][]string{{"completed", "request_throughput", "output_throughput", "duration"}}},
	// tokens_per_second counts prompt tokens, too; many releases print the generated ones alone only on stdout.
	{name: "vllm-throughput/json", needs: []string{"total_throughput", "request_throughput", "duration"},
		is: [][]string{{"elapsed_time", "num_requests", "total_num_tokens", "requests_per_second", "tokens_per_second"}},
		means: map[string]string{"tokens_per_second": "total_throughput", "requests_per_second": "request_throughput",
			"elapsed_time": "duration in s", "num_requests": requests, "total_input_tokens": inputTokens,
			"total_output_tokens": outputTokens, "output_tokens_per_second": "output_throughput"}},
	{name: "vllm-latency/json", rule: vllmRule, needs: []string{"batch_latency_mean"},
		is:    [][]string{{"avg_latency", "latencies", "percentiles"}},
		means: map[string]string{"avg_latency": "batch_latency_mean in s"},
		stats: map[string]string{"percentiles/{stat}": "batch_latency in s"}},
	// AIPerf and GenAI-Perf, its predecessor, share names and units but are two programs.
	{name: aiperfFormat, rule: "aiperf, linear", means: exportMeans, stats: exportStats, also: readExport,
		is: [][]string{{"schema_version", "output_token_throughput/unit"}, {"schema_version", "request_throughput/unit"},
			{"records/output_token_throughput/unit"}, {"records/request_throughput/unit"}}},
	{name: aiperfFormat, rule: "genai-perf, linear", means: exportMeans, stats: exportStats, also: readExport,
		is: [][]string{{"output_token_throughput/unit"}, {"request_throughput/unit"}}},
	// SGLang's bench_one_batch and bench_one_batch_server, one line per batch of equal requests
	{name: "sglang-one-batch/json", needs: []string{"total_throughput"}, own: oneBatchOwn,
		is:    [][]string{{"batch_size", "input_len", "output_len", "overall_throughput"}},
		words: []string{"prefill_throughput", "output_throughput"},
		means: map[string]string{
			"prefill_latency":          "prefill_latency_mean in s",
			"median_decode_latency":    "decode_latency_p50 in s",
			"median_decode_throughput": "decode_throughput",
			"total_latency":            "batch_latency_mean in s",
			"latency":                  "batch_latency_mean in s",
			"input_throughput":         "prefill_throughput",
			"overall_throughput":       "total_throughput",
			"last_ttft":                "ttft_max in s",
			"batch_size":               requests,
			"input_len":                meanInput,
			"output_len":               meanOutput,
		}},
	{name: "trtllm-bench-moe/json", needs: []string{"moe_latency"}, also: readMoE,
		is:    [][]string{{"benchmark", "results/0/latency_ms/score"}},
		means: map[string]string{"results/0/latency_ms/score": "moe_latency"}},
}

// The numbers in the JSON of all serving clients; none has all of them.
var (
	clientWords = []string{"output_throughput", "request_throughput", "input_throughput", "total_throughput",
		"user_throughput", "request_goodput"}
	clientMeans = map[string]string{
		"duration":               "duration in s",
		"completed":              requests,
		"total_input_tokens":     inputTokens,
		"total_output_tokens":    outputTokens,
		"failed":                 failures,
		"total_token_throughput": "total_throughput",
		"request_goodput:":       "request_goodput", // trtllm-serve's key really ends in a colon
	}
	clientStats = map[string]string{"{stat}_ttft_ms": "ttft", "{stat}_tpot_ms": "tpot", "{stat}_itl_ms": "itl",
		"{stat}_e2el_ms": "request_latency", "{stat}_e2e_latency_ms": "request_latency"}
)

// The numbers in the exports of AIPerf and GenAI-Perf. Their inter token latency is what others call time per
// output token (one mean per request); their inter chunk latency is every gap.
var (
	exportMeans = map[string]string{
		"output_token_throughput/avg": "output_throughput",
		"total_token_throughput/avg":  "total_throughput",
		"request_throughput/avg":      "request_throughput",
		"goodput/avg":                 "request_goodput",
		"benchmark_duration/avg":      "duration",
		"request_count/avg":           requests,
		"error_request_count/avg":     failures,
		"total_isl/avg":               inputTokens,
		"total_osl/avg":               outputTokens,
		"input_sequence_length/avg":   meanInput,
		"output_sequence_length/avg":  meanOutput,
	}
	exportStats = map[string]string{"request_latency/{stat}": "request_latency", "time_to_first_token/{stat}": "ttft",
		"ttft/{stat}": "ttft", "inter_token_latency/{stat}": "tpot", "inter_chunk_latency/{stat}": "itl",
		"output_token_throughput_per_user/{stat}": "user_speed"}
)

// oneBatchOwn are the definitions of SGLang's one-batch programs.
var oneBatchOwn = map[string]string{
	"decode_throughput": "generated tokens over the median decode step",
	"output_throughput": "generated tokens over the time after the last first token",
}

// settings are the paths by which objects say what was run, printedSettings the labels.
var (
	settings = map[string]string{
		"model_id": "model", "engine/model": "model", "input_config/endpoint/model_names/0": "model",
		"input_config/model/0": "model", "model/name": "model", "engine/quantization": "quantization", "hidden": "hidden",
		"router": "router", "shape/experts": "experts", "shape/top_k": "top_k", "model/top_k": "top_k", "layers": "layers",
		"tokens_per_rank": "tokens_per_rank", "results/0/workload/num_tokens": "tokens",
		"engine/backend": "backend", "experts": "backend", "backend": "backend", "results/0/actual_config/backend": "backend",
		"max_concurrency": "max_concurrency", "request_rate": "request_rate", "num_prompts": "num_prompts",
		"batch_size": "batch_size", "input_len": "input_len", "output_len": "output_len",
	}
	printedSettings = map[string]string{"model": "model", "backend": "backend",
		"max request concurrency": "max_concurrency", "maximum request concurrency": "max_concurrency",
		"traffic request rate": "request_rate", "request rate configured (rps)": "request_rate"}
)

// printedFormats are the reports that tools print, with labels as readLabels takes them. Of those under one title
// the first that fits takes the labels.
var printedFormats = []*format{
	// Labels of trtllm-bench since release 0.12 (tensorrt_llm/bench/dataclasses/reporting.py and its predecessors)
	{name: "trtllm-bench/stdout", rule: trtllmRule, needs: wholeRun,
		is: [][]string{{"token throughput"}, {"total output throughput"}}, means: map[string]string{
			"token throughput":               "output_throughput",
			"total output throughput":        "output_throughput",
			"total token throughput":         "total_throughput",
			"request throughput":             "request_throughput",
			"total latency":                  "duration",
			"average request latency":        "request_latency_mean",
			"per user output throughput":     "user_throughput",
			"per gpu output throughput":      "gpu_throughput",
			"average time-to-first-token":    "ttft_mean",
			"average inter-token latency":    "tpot_mean",
			"average time-per-output-token":  "tpot_mean",
			"per user output speed":          "user_speed",
			"number of requests":             requests,
			"average input length (tokens)":  meanInput,
			"average output length (tokens)": meanOutput,
			"ep size":                        ranks,
		}, stats: map[string]string{"[tpot] {stat}": "tpot", "[ttft] {stat}": "ttft", "[latency] {stat}": "request_latency",
			"[gtps] {stat}": "user_speed"}},
	// The block that all serving clients print; a backend is SGLang's
	{name: sglangFormat + "/stdout", rule: sglangRule, needs: wholeRun, means: blockMeans, stats: blockStats,
		title: "Serving Benchmark Result", is: [][]string{{"backend"}}},
	{name: servingFormat + "/stdout", rule: servingRule, needs: wholeRun, means: blockMeans, stats: blockStats,
		title: "Serving Benchmark Result", is: [][]string{{}}},
	{name: "vllm-throughput/stdout", needs: []string{"request_throughput", "total_throughput"},
		is: [][]string{{"throughput requests/s"}}, means: map[string]string{"total num prompt tokens": inputTokens,
			"total num output tokens": outputTokens, "throughput requests/s": "request_throughput",
			"throughput tokens/s": "total_throughput", "throughput total tokens/s": "total_throughput",
			"throughput output tokens/s": "output_throughput"}},
	{name: "vllm-latency/stdout", rule: vllmRule, needs: []string{"batch_latency_mean"},
		is:    [][]string{{"avg latency seconds"}, {"50% percentile latency seconds"}},
		means: map[string]string{"avg latency seconds": "batch_latency_mean"},
		stats: map[string]string{"{stat}% percentile latency seconds": "batch_latency"}},
	// SGLang's bench_one_batch; the lines of its warm-up come first, under a title of their own
	{name: "sglang-one-batch/stdout", needs: []string{"total_throughput"}, own: oneBatchOwn, title: "Benchmark ...",
		is: [][]string{{}}, means: map[string]string{
			"prefill. latency s":                "prefill_latency_mean",
			"prefill. throughput token/s":       "prefill_throughput",
			"decode. median latency s":          "decode_latency_p50",
			"decode. median throughput token/s": "decode_throughput",
			"total. latency s":                  "batch_latency_mean",
			"total. throughput token/s":         "total_throughput",
		}},
	{name: "sglang-one-batch-server/stdout", needs: []string{"output_throughput", "batch_latency_mean"}, own: oneBatchOwn,
		is: [][]string{{"output throughput tok/s"}}, means: map[string]string{
			"#input tokens":           inputTokens,
			"#output tokens":          outputTokens,
			"batch size":              requests,
			"latency s":               "batch_latency_mean",
			"input throughput tok/s":  "prefill_throughput",
			"output throughput tok/s": "output_throughput",
			"last_ttft s":             "ttft_max",
		}},
}

// The labels under the titles of the serving clients.
var (
	blockMeans = map[string]string{
		"successful requests":     requests,
		"failed requests":         failures,
		"benchmark duration":      "duration",
		"total input tokens":      inputTokens,
		"total generated tokens":  outputTokens,
		"request throughput":      "request_throughput",
		"request goodput":         "request_goodput",
		"input token throughput":  "input_throughput",
		"output token throughput": "output_throughput",
		"total token throughput":  "total_throughput",
		"user throughput":         "user_throughput",
	}
	blockStats = map[string]string{"{stat} ttft": "ttft", "{stat} tpot": "tpot", "{stat} itl": "itl",
		"{stat} e2el": "request_latency", "{stat} e2e latency": "request_latency"}
)
