package metrics

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// format is one layout of a tool's output: how it is recognized, and what it does differently from others. Most paths
// mean the same in all formats, see meanings.
type format struct {
	name  string
	rule  string            // how the tool takes percentiles, see metric
	title string            // over printed labels, empty for any
	is    [][]string        // a document of the format has all paths of one of these
	needs []string          // metrics that a whole report has
	means map[string]string // paths whose names are too general for meanings
	also  func(*report, *document)
}

// How tools take percentiles. trtllm-bench does not interpolate, so its p99 is the maximum below 101
// requests (tensorrt_llm/bench/dataclasses/general.py); the others do as numpy does.
const (
	trtllmRule  = "trtllm-bench, sorted[floor(n·q)]"
	servingRule = "serving client, linear"
	sglangRule  = "sglang client, linear"
	vllmRule    = "vllm bench latency, linear"
)

// clientRun are the metrics of every report of a serving client, wholeRun of every other tool that times a run.
var clientRun, wholeRun = []string{"output_throughput", "duration"},
	[]string{"output_throughput", "request_throughput", "duration"}

// iterations recognizes the rows of engines' iteration logs, which are objects or lines: TensorRT-LLM writes them with
// --iteration_log, /metrics, print_iter_log and --log_iteration_data, SGLang with --decode-log-interval.
var iterations = &format{name: "iteration-log", is: [][]string{{"iter", "iterLatencyMS"}, {"iter", "hostStepTimeMS"},
	{"iter", "states/num_ctx_tokens"}, {"Iteration Counter", "Active Request Count", "Timestamp"}, {decodeSpeed}}}

// formats are tried in order; the first that fits takes an object, or the labels under a title.
var formats = []*format{
	{name: "moebalance-workload", rule: "moebalance-workload, linear", needs: []string{"token_throughput"},
		is: [][]string{{"perfect_router", "ranks", "tokens_per_rank", "tokens_per_second"}},
		means: map[string]string{"tokens_per_second": "token_throughput", requests: requests, inputTokens: inputTokens,
			ranks: ranks}, also: readWorkload},
	{name: "trtllm-bench/report-json", rule: trtllmRule, needs: wholeRun,
		is: [][]string{{"performance", "request_info", "engine"}, {"performance", "world_info"}}},
	// The serving clients are trtllm-serve's benchmark_serving.py and vLLM's "bench serve", of which it is a fork, and
	// SGLang's bench_serving, whose releases of 2024 give output_throughput alone.
	{name: "sglang-serving/json", rule: sglangRule, needs: clientRun, also: readClient, is: [][]string{
		{"completed", "output_throughput", "duration", "total_output_tokens_retokenized"},
		{"completed", "output_throughput", "duration", "mean_e2e_latency_ms"},
		{"completed", "output_throughput", "duration", "input_throughput", "dataset_name"}}},
	{name: "serving/json", rule: servingRule, needs: clientRun, also: readClient,
		is: [][]string{{"completed", "request_throughput", "output_throughput", "duration"}}},
	// tokens_per_second counts prompt tokens, too; many releases print the generated ones alone only on stdout.
	{name: "vllm-throughput/json", needs: []string{"total_throughput", "request_throughput", "duration"},
		is: [][]string{{"elapsed_time", "num_requests", "total_num_tokens", "requests_per_second", "tokens_per_second"}},
		means: map[string]string{"tokens_per_second": "total_throughput", "elapsed_time": "duration in s",
			"num_requests": requests}},
	{name: "vllm-latency/json", rule: vllmRule, needs: []string{"batch_latency_mean"},
		is: [][]string{{"avg_latency", "latencies", "percentiles"}}},
	// AIPerf and GenAI-Perf, its predecessor, share names and units but are two programs.
	{name: "aiperf", rule: "aiperf, linear", also: readExport,
		is: [][]string{{"schema_version", "request_throughput/unit"}, {"records/request_throughput/unit"}}},
	{name: "aiperf", rule: "genai-perf, linear", also: readExport, is: [][]string{{"request_throughput/unit"}}},
	// the second section of their CSV, of single values; genai-perf names other units
	{name: "aiperf", title: "Metric,Value", is: [][]string{{"output token throughput"}}},
	// SGLang's bench_one_batch and bench_one_batch_server, one line per batch of equal requests
	{name: "sglang-one-batch/json", needs: []string{"total_throughput"}, means: oneBatchMeans,
		is: [][]string{{"batch_size", "input_len", "output_len", "overall_throughput"}}},
	{name: "trtllm-bench-moe/json", needs: []string{"moe_latency"}, also: readMoE,
		is: [][]string{{"benchmark", "results/0/latency_ms/score"}}},
	// trtllm-bench since release 0.12 (tensorrt_llm/bench/dataclasses/reporting.py and its predecessors)
	{name: "trtllm-bench/stdout", rule: trtllmRule, needs: wholeRun,
		is: [][]string{{"token throughput"}, {"total output throughput"}}},
	// The block that all serving clients print; a backend is SGLang's
	{name: "sglang-serving/stdout", rule: sglangRule, needs: wholeRun, title: "Serving Benchmark Result",
		is: [][]string{{"backend"}}},
	{name: "serving/stdout", rule: servingRule, needs: wholeRun, title: "Serving Benchmark Result",
		is: [][]string{{}}},
	{name: "vllm-throughput/stdout", needs: []string{"request_throughput", "total_throughput"},
		is: [][]string{{"throughput requests/s"}}},
	{name: "vllm-latency/stdout", rule: vllmRule, needs: []string{"batch_latency_mean"},
		is: [][]string{{"avg latency seconds"}, {"50% percentile latency seconds"}}},
	// The lines of bench_one_batch's warm-up come first, under a title of their own.
	{name: "sglang-one-batch/stdout", needs: []string{"total_throughput"}, title: "Benchmark ...",
		is: [][]string{{}}},
	{name: "sglang-one-batch-server/stdout", needs: []string{"output_throughput", "batch_latency_mean"},
		is: [][]string{{"output throughput tok/s"}}},
}

// oneBatchMeans are the names of SGLang's one-batch programs.
var oneBatchMeans = map[string]string{"batch_size": requests, "input_len": meanInput, "output_len": meanOutput,
	"total_latency": "batch_latency_mean in s", "latency": "batch_latency_mean in s",
	"input_throughput": "prefill_throughput", "last_ttft": "ttft_max in s"}

// meanings says which metric, or other number, stands at a path or printed label: "duration in s" is one in seconds.
// The name of a throughput or goodput of the vocabulary means itself. "{stat}" stands for a mean, a percentile and so
// on.
var meanings = map[string]string{
	// trtllm-bench, its report and what it prints
	"performance/system_output_throughput_tok_s": "output_throughput", "total output throughput": "output_throughput",
	"performance/request_throughput_req_s": "request_throughput", "request throughput": "request_throughput",
	"performance/total_latency_ms": "duration", "total latency": "duration", "token throughput": "output_throughput",
	"performance/system_total_throughput_tok_s": "total_throughput", "total token throughput": "total_throughput",
	"performance/output_throughput_per_user_tok_s": "user_throughput", "per user output throughput": "user_throughput",
	"performance/avg_request_latency_ms": "request_latency_mean", "average request latency": "request_latency_mean",
	"performance/request_latency_percentiles_ms/{stat}": "request_latency", "[latency] {stat}": "request_latency",
	"streaming_metrics/avg_ttft_ms": "ttft_mean", "average time-to-first-token": "ttft_mean",
	"streaming_metrics/ttft_percentiles/{stat}": "ttft", "[ttft] {stat}": "ttft",
	"streaming_metrics/avg_tpot_ms": "tpot_mean", "average time-per-output-token": "tpot_mean",
	"streaming_metrics/tpot_percentiles/{stat}": "tpot", "[tpot] {stat}": "tpot",
	"average inter-token latency":                "tpot_mean",
	"streaming_metrics/token_output_speed_tok_s": "user_speed_mean", "per user output speed": "user_speed_mean",
	"streaming_metrics/gen_tps_percentiles/{stat}": "user_speed", "[gtps] {stat}": "user_speed",
	"request_info/num_requests": requests, "number of requests": requests,
	"request_info/avg_num_concurrent_requests": concurrent, "number of concurrent requests": concurrent,
	"request_info/avg_input_length": meanInput, "average input length (tokens)": meanInput,
	"request_info/avg_output_length": meanOutput, "average output length (tokens)": meanOutput,
	"world_info/ep_size": ranks, "ep size": ranks,
	"decoding_stats/acceptance_length_percentiles/average": accepted, "[al] average": accepted,
	// bench_moe
	"results/0/latency_ms/score": "moe_latency",
	// serving clients; trtllm-serve's key really ends in a colon
	"duration": "duration in s", "benchmark duration": "duration", "completed": requests, "successful requests": requests,
	"total_input_tokens": inputTokens, "total input tokens": inputTokens, "failed": failures, "failed requests": failures,
	"total_output_tokens": outputTokens, "total generated tokens": outputTokens, "request_goodput:": "request_goodput",
	"total_token_throughput": "total_throughput", "user throughput": "user_throughput",
	"request goodput": "request_goodput", "input token throughput": "input_throughput",
	"output token throughput": "output_throughput",
	"{stat}_ttft_ms":          "ttft", "{stat} ttft": "ttft", "{stat}_tpot_ms": "tpot", "{stat} tpot": "tpot",
	"{stat}_itl_ms": "itl", "{stat} itl": "itl", "{stat}_e2el_ms": "request_latency", "{stat} e2el": "request_latency",
	"{stat}_e2e_latency_ms": "request_latency", "{stat} e2e latency": "request_latency",
	"accept_length": accepted, "accept length": accepted, // SGLang's
	// vLLM's throughput and latency benchmarks
	"requests_per_second": "request_throughput", "throughput requests/s": "request_throughput",
	"output_tokens_per_second": "output_throughput", "throughput output tokens/s": "output_throughput",
	"throughput tokens/s": "total_throughput", "throughput total tokens/s": "total_throughput",
	"total num prompt tokens": inputTokens, "total num output tokens": outputTokens,
	"avg_latency": "batch_latency_mean in s", "avg latency seconds": "batch_latency_mean",
	"percentiles/{stat}": "batch_latency in s", "{stat}% percentile latency seconds": "batch_latency",
	// AIPerf and GenAI-Perf. Their inter token latency is what others call time per output token (one mean per
	// request); their inter chunk latency is every gap.
	"output_token_throughput/avg": "output_throughput", "total_token_throughput/avg": "total_throughput",
	"request_throughput/avg": "request_throughput", "goodput/avg": "request_goodput", "benchmark_duration/avg": "duration",
	"request_count/avg": requests, "error_request_count/avg": failures, "total_isl/avg": inputTokens,
	"total_osl/avg": outputTokens, "input_sequence_length/avg": meanInput, "output_sequence_length/avg": meanOutput,
	"request_latency/{stat}": "request_latency", "time_to_first_token/{stat}": "ttft", "ttft/{stat}": "ttft",
	"inter_token_latency/{stat}": "tpot", "inter_chunk_latency/{stat}": "itl",
	"output_token_throughput_per_user/{stat}": "user_speed", "request count": requests, "request count (count)": requests,
	"request throughput (per sec)": "request_throughput",
	// SGLang's one-batch programs
	"prefill_latency": "prefill_latency_mean in s", "prefill. latency s": "prefill_latency_mean",
	"median_decode_latency": "decode_latency_p50 in s", "decode. median latency s": "decode_latency_p50",
	"median_decode_throughput": "decode_throughput", "decode. median throughput token/s": "decode_throughput",
	"overall_throughput": "total_throughput", "total. throughput token/s": "total_throughput",
	"prefill. throughput token/s": "prefill_throughput", "total. latency s": "batch_latency_mean",
	"#input tokens": inputTokens, "#output tokens": outputTokens, "batch size": requests,
	"latency s": "batch_latency_mean", "last_ttft s": "ttft_max", "input throughput tok/s": "prefill_throughput",
	"output throughput tok/s": "output_throughput",
}

// settings are the paths and labels by which outputs say what was run. An engine's own are named "runtime …": builds
// may differ in them.
var settings = map[string]string{
	"model_id": "model", "engine/model": "model", "input_config/endpoint/model_names/0": "model",
	"input_config/model/0": "model", "model/name": "model", "shape/experts": "experts", "shape/top_k": "top_k",
	"model/top_k": "top_k", "results/0/workload/num_tokens": "tokens", "experts": "backend",
	"results/0/actual_config/backend": "runtime backend", "max request concurrency": "max_concurrency",
	"maximum request concurrency": "max_concurrency", "traffic request rate": "request_rate",
	"request rate configured (rps)": "request_rate", "input_config/loadgen/concurrency": "max_concurrency",
	"input_config/loadgen/request_rate": "request_rate", "dataset_name": "dataset", "tokenizer_id": "tokenizer",
	// the engine, by trtllm-bench's report and what it prints
	"engine/backend": "runtime backend", "engine backend": "runtime backend", "machine/name": "runtime gpu",
	"gpu": "runtime gpu", "num_gpus": "runtime gpus", "engine/version": "runtime version",
	"tensorrt llm version": "runtime version", "tensorrt-llm version": "runtime version",
	"server_info/version": "runtime version", "max runtime batch size": "runtime max_batch_size",
	"max runtime tokens": "runtime max_num_tokens", "kv memory percentage": "runtime kv memory",
}

// ofRun are settings that go by their own names, and ofEngine those by which reports, labels ("tp size") and SGLang's
// client name the same of an engine.
var (
	ofRun = strings.Fields("model hidden router layers tokens_per_rank clock backend max_concurrency request_rate " +
		"num_prompts batch_size input_len output_len burstiness endpoint_type random_input_len random_output_len " +
		"random_range_ratio sharegpt_output_len")
	engineGroup = regexp.MustCompile(`^(?:engine|world_info|server_info)/`)
	ofEngine    = strings.Fields("quantization dtype kv_cache_dtype tp_size pp_size ep_size dp_size max_batch_size " +
		"max_num_tokens kv_cache_percentage scheduling_policy")
)

// setting is what a path or label says of the run: "world_info/tp_size" → "runtime tp_size".
func setting(path string) string {
	if name := strings.ReplaceAll(engineGroup.ReplaceAllString(path, ""), " ", "_"); slices.Contains(ofEngine, name) {
		return "runtime " + name
	} else if slices.Contains(ofRun, path) {
		return path
	}
	return settings[path]
}

// fits recognizes a document of the format.
func (f *format) fits(d *document) bool {
	return (f.title == "" || f.title == d.title) &&
		slices.ContainsFunc(f.is, func(paths []string) bool { return d.has(paths...) })
}

// meaning is the metric of a path, with its unit in the output where the output does not say it.
//
//	"median_ttft_ms"  → "ttft_p50", ""
//	"elapsed_time"    → "duration", "s", where the format says so
func (f *format) meaning(path string) (name, unit string) {
	path = strings.TrimPrefix(path, "records/") // AIPerf's releases of 2025
	if name, unit, _ = strings.Cut(cmp.Or(f.means[path], meanings[path]), " in "); name != "" {
		return name, unit
	} else if strings.HasSuffix(vocabulary[path].unit, "/s") {
		return path, ""
	}
	for _, at := range statistic.FindAllStringIndex(path, -1) {
		word := strings.ToLower(path[at[0]:at[1]])
		of100, _ := strconv.ParseFloat(strings.TrimPrefix(word, "p"), 64) // p99, 50, 99.9
		name, unit, _ = strings.Cut(meanings[path[:at[0]]+"{stat}"+path[at[1]:]], " in ")
		if name != "" && (statistics[word] != "" || of100 > 0 && of100 < 100) {
			return name + "_" + cmp.Or(statistics[word], "p"+strings.TrimPrefix(word, "p")), unit
		}
	}
	return "", ""
}
