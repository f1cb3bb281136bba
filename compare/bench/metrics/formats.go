package metrics

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
	"gonum.org/v1/gonum/stat"
)

// The formats that others ask for by name. The serving clients are trtllm-serve's
// benchmark_serving.py and vLLM's "bench serve", of which it is a fork, and SGLang's bench_serving.
const (
	workloadFormat  = "moebalance-workload"
	iterationFormat = "iteration-log"
	servingFormat   = "serving"
	sglangFormat    = "sglang-serving"
	aiperfFormat    = "aiperf"
	sweepFormat     = "vllm-sweep/json"

	oneBatchServerFormat = "sglang-one-batch-server/stdout"
)

// How tools take percentiles. trtllm-bench does not interpolate, so its p99 is the maximum below 101
// requests (tensorrt_llm/bench/dataclasses/general.py); the others do as numpy does.
const (
	trtllmRule  = "trtllm-bench, sorted[floor(n·q)]"
	servingRule = "serving client, linear"
	sglangRule  = "sglang client, linear"
	vllmRule    = "vllm bench latency, linear"
)

// formats are all layouts, those of objects in the order they are tried: the first that fits takes
// the object. A printed line is offered to every printed report.
var formats []*format

func init() { formats = append(objectFormats, printedFormats...) }

var objectFormats = []*format{
	{format: workloadFormat, percentiles: workloadFormat + ", linear", needs: []string{"token_throughput"},
		is:   has("perfect_router", "ranks", "tokens_per_rank", "tokens_per_second"),
		also: readWorkload, means: map[string]meaning{"requests": requests, "input_tokens": inputTokens,
			"expert_floor": {into: func(r *report, v router.Number) { r.proof.ExpertFloor = v }},
			"rank_floor":   {into: func(r *report, v router.Number) { r.proof.RankFloor = v }}}},
	{format: iterationFormat, is: isIteration, also: readIteration, finish: finishIterations},
	{format: "trtllm-bench/report-json", percentiles: trtllmRule, needs: trtllmNeeds, is: func(d *document) bool {
		return d.has("performance", "request_info", "engine") || d.has("performance", "world_info")
	}, also: readTRTLLMReport, means: map[string]meaning{
		"performance/system_output_throughput_tok_s":   metric("output_throughput"),
		"performance/request_throughput_req_s":         metric("request_throughput"),
		"performance/total_latency_ms":                 metric("duration"),
		"performance/system_total_throughput_tok_s":    metric("total_throughput"),
		"performance/output_throughput_per_user_tok_s": metric("user_throughput"),
		"performance/output_throughput_per_gpu_tok_s":  metric("gpu_throughput"),
		"performance/avg_request_latency_ms":           metric("request_latency_mean"),
		"streaming_metrics/token_output_speed_tok_s":   metric("user_speed"),
		"streaming_metrics/avg_ttft_ms":                metric("ttft_mean"),
		"streaming_metrics/avg_tpot_ms":                metric("tpot_mean"),
		"energy/total_energy_j":                        metric("energy"),
		"energy/average_gpu_power":                     metric("gpu_power"),
		"energy/output_tps_per_w":                      metric("output_per_watt"),
		"request_info/num_requests":                    requests,
		"request_info/avg_input_length":                meanInput,
		"request_info/avg_output_length":               meanOutput,
		"world_info/ep_size":                           epSize,
	}, statistics: regexp.MustCompile(`^(?:performance|streaming_metrics)/` +
		`(?P<of>request_latency_percentiles_ms|tpot_percentiles|ttft_percentiles|gen_tps_percentiles)/(?P<stat>[^/]+)$`),
		families: map[string]string{"request_latency_percentiles_ms": "request_latency", "tpot_percentiles": "tpot",
			"ttft_percentiles": "ttft", "gen_tps_percentiles": "user_speed"}},
	// Releases of 2024 give output_throughput alone.
	{format: sglangFormat + "/json", percentiles: sglangRule, needs: []string{"output_throughput", "duration"},
		is: func(d *document) bool {
			return d.has("completed", "output_throughput", "duration") && (d.has("total_output_tokens_retokenized") ||
				d.has("mean_e2e_latency_ms") || d.has("input_throughput", "dataset_name"))
		}, also: readClient, means: clientMeans, statistics: clientStatistics, families: clientFamilies},
	// bench_offline_throughput
	{format: "sglang-offline/json", needs: []string{"output_throughput", "request_throughput", "duration"},
		is: has("successful_requests", "total_latency", "output_throughput", "request_throughput"),
		means: map[string]meaning{"output_throughput": metric("output_throughput"),
			"request_throughput": metric("request_throughput"), "total_latency": seconds("duration"),
			"input_throughput": metric("input_throughput"), "total_throughput": metric("total_throughput"),
			"successful_requests": requests, "total_input_tokens": inputTokens, "total_output_tokens": outputTokens}},
	{format: sweepFormat, percentiles: servingRule, finish: finishSweep, also: readSweepRun,
		is: has("run_number", "completed", "request_throughput", "output_throughput", "duration")},
	{format: servingFormat + "/json", percentiles: servingRule, needs: []string{"output_throughput", "duration"},
		is:   has("completed", "request_throughput", "output_throughput", "duration"),
		also: readClient, means: clientMeans, statistics: clientStatistics, families: clientFamilies},
	// tokens_per_second counts prompt and generated tokens; many releases print the generated ones alone only on stdout.
	{format: "vllm-throughput/json", needs: []string{"total_throughput", "request_throughput", "duration"},
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
	{format: "vllm-latency/json", percentiles: vllmRule, needs: []string{"batch_latency_mean"},
		is: has("avg_latency", "latencies", "percentiles"), means: map[string]meaning{"avg_latency": seconds("batch_latency_mean")},
		statistics: regexp.MustCompile(`^percentiles/(?P<stat>.+)$`), families: map[string]string{"": "batch_latency"},
		factor: 1e3, also: func(r *report, doc *document) {
			if runs, ok := r.list(doc, "latencies"); ok {
				r.timed(runs, 1e3, elapsed)
			}
		}},
	// AIPerf and GenAI-Perf, its predecessor, share names and units but are two programs.
	exportOf("aiperf, linear", func(d *document) bool { return isAIPerf(d) && (d.has("schema_version") || d.has("records")) }),
	exportOf("genai-perf, linear", isAIPerf),
	// sglang bench_one_batch and bench_one_batch_server, one line per batch
	{format: "sglang-one-batch/json", needs: []string{"total_throughput"}, also: readBatch,
		is: has("batch_size", "input_len", "output_len", "overall_throughput"), means: map[string]meaning{
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
		}},
	{format: "trtllm-bench-moe/json", needs: []string{"moe_latency"}, also: readMoE,
		is:    func(d *document) bool { return d.values["benchmark"] == "bench_moe" && d.has("results") },
		means: map[string]meaning{"results/0/latency_ms/score": metric("moe_latency")}},
}

const afterLastToken = "generated tokens over the time after the last first token"

var trtllmNeeds = []string{"output_throughput", "request_throughput", "duration"}

// clientMeans are the totals in the JSON of all serving clients; none has all of them.
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
}

var (
	clientStatistics = regexp.MustCompile(`^(?P<stat>[^_/]+)_(?P<of>ttft|tpot|itl|e2el|e2e_latency)_ms$`)
	clientFamilies   = map[string]string{"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "request_latency",
		"e2e_latency": "request_latency"}
)

// exportOf is the format of the exports of AIPerf and GenAI-Perf.
func exportOf(percentiles string, is func(*document) bool) *format {
	return &format{format: aiperfFormat, percentiles: percentiles, is: is, also: readAIPerf, means: aiperfMeans,
		units: true, statistics: regexp.MustCompile(`^(?:records/)?(?P<of>request_latency|time_to_first_token|ttft|` +
			`inter_token_latency|inter_chunk_latency|output_token_throughput_per_user)/(?P<stat>[^/]+)$`),
		// Their inter token latency is what others call time per output token (one mean per request); their inter
		// chunk latency is every gap.
		families: map[string]string{"request_latency": "request_latency", "time_to_first_token": "ttft", "ttft": "ttft",
			"inter_token_latency": "tpot", "inter_chunk_latency": "itl", "output_token_throughput_per_user": "user_speed"}}
}

// aiperfMeans are the numbers of these exports; releases of 2025 hold the metrics in "records".
var aiperfMeans = func() map[string]meaning {
	means := map[string]meaning{}
	for key, m := range map[string]meaning{
		"output_token_throughput": metric("output_throughput"),
		"total_token_throughput":  metric("total_throughput"),
		"request_throughput":      metric("request_throughput"),
		"goodput":                 metric("request_goodput"),
		"benchmark_duration":      metric("duration"),
		"request_count":           requests,
		"error_request_count":     failures,
		"total_isl":               inputTokens,
		"total_osl":               outputTokens,
		"input_sequence_length":   meanInput,
		"output_sequence_length":  meanOutput,
	} {
		means[key+"/avg"], means["records/"+key+"/avg"] = m, m
	}
	return means
}()

var digits = `(?P<value>\d[\d.]*(?:[eE][+-]?\d+)?)`

// printedFormats are the reports that tools print.
var printedFormats = []*format{
	// trtllm-bench, in three generations of labels (tensorrt_llm/bench/dataclasses/reporting.py and its predecessors):
	//
	//	a  Token Throughput (tokens/sec)           about 0.12 to 0.17
	//	b  Total Output Throughput (tokens/sec)    about 0.18 and 0.19
	//	c  … and Per User Output Speed (tps/user)  0.20 and later
	{format: "trtllm-bench/stdout", percentiles: trtllmRule, needs: trtllmNeeds, finish: func(r *report) {
		r.name += "-" + cmp.Or(r.since, "a")
		r.countTokens()
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
		"Per User Output Throughput [w/ ctx] (tps/user)":   {metric: "user_throughput", since: "c"},
		"Per GPU Output Throughput (tokens/sec/gpu)":       metric("gpu_throughput"),
		"Per GPU Output Throughput (tps/gpu)":              {metric: "gpu_throughput", since: "c"},
		"Average time-to-first-token (ms)":                 metric("ttft_mean"),
		"Average time-to-first-token [TTFT] (ms)":          metric("ttft_mean"),
		"Average inter-token latency (ms)":                 metric("tpot_mean"),
		"Average time-per-output-token [TPOT] (ms)":        metric("tpot_mean"),
		"Per User Output Speed [1/TPOT] (tokens/sec/user)": metric("user_speed"),
		"Per User Output Speed (tps/user)":                 {metric: "user_speed", since: "c"},
		"Total Energy (J)":                                 metric("energy"),
		"Average GPU Power (W)":                            metric("gpu_power"),
		"Output Tokens per Second per Watt (tps/W)":        metric("output_per_watt"),
		"Number of requests":                               requests,
		"Average Input Length (tokens)":                    meanInput,
		"Average Output Length (tokens)":                   meanOutput,
		"EP Size":                                          epSize,
	}, // "[TPOT] P50    :", of the second generation on
		statistics: regexp.MustCompile(`^\[(?P<of>TPOT|TTFT|Latency|GTPS)\] (?P<stat>MINIMUM|MAXIMUM|AVERAGE|P\d{1,2})$`),
		families:   map[string]string{"TPOT": "tpot", "TTFT": "ttft", "Latency": "request_latency", "GTPS": "user_speed"}},
	// The block that all serving clients and SGLang's bench_offline_throughput print.
	{format: servingFormat + "/stdout", percentiles: servingRule, needs: trtllmNeeds,
		title: regexp.MustCompile(`^=+ Serving Benchmark Result =+$`), means: blockMeans, statistics: blockStatistics,
		families: blockFamilies, also: func(r *report, doc *document) {
			if backend, ok := strings.CutPrefix(doc.text, "Backend:"); ok &&
				strings.HasPrefix(strings.TrimSpace(backend), "sglang") {
				r.name, r.rule = sglangFormat+"/stdout", sglangRule
			}
		}},
	{format: "sglang-offline/stdout", percentiles: sglangRule, needs: trtllmNeeds, means: blockMeans,
		title: regexp.MustCompile(`^=+ Offline Throughput Benchmark Result =+$`), statistics: blockStatistics,
		families: blockFamilies},
	// Two numbers are of requests and of prompt and generated tokens.
	{format: "vllm-throughput/stdout", needs: []string{"request_throughput", "total_throughput"},
		means: map[string]meaning{"Total num prompt tokens": inputTokens, "Total num output tokens": outputTokens,
			"requests/s": metric("request_throughput"), "tokens/s": metric("total_throughput"),
			"total tokens/s": metric("total_throughput"), "output tokens/s": metric("output_throughput")},
		forms: []lineForm{{"Throughput: ", regexp.MustCompile(`^Throughput: .*s$`), regexp.MustCompile(
			digits + ` (?P<label>requests/s|(?:total |output )?tokens/s)(?:,|$)`)}}},
	{format: "vllm-latency/stdout", percentiles: vllmRule, needs: []string{"batch_latency_mean"}, factor: 1e3,
		means:      map[string]meaning{"Avg": seconds("batch_latency_mean")},
		statistics: regexp.MustCompile(`^(?P<stat>\d{1,2})% percentile$`), families: map[string]string{"": "batch_latency"},
		forms: []lineForm{{" latency: ", regexp.MustCompile(`^(?:Avg|\d{1,2}% percentile) latency: .* seconds$`),
			regexp.MustCompile(`^(?P<label>Avg|\d{1,2}% percentile) latency: ` + digits + ` seconds$`)}}},
	// sglang bench_one_batch; the lines of its warm-up come first, under a title of their own
	{format: "sglang-one-batch/stdout", needs: []string{"total_throughput"}, means: map[string]meaning{
		"Prefill latency":          seconds("prefill_latency_mean"),
		"Prefill throughput":       metric("prefill_throughput"),
		"Decode median latency":    seconds("decode_latency_p50"),
		"Decode median throughput": ownMetric("decode_throughput", "generated tokens over the median decode step"),
		"Total latency":            seconds("batch_latency_mean"),
		"Total throughput":         metric("total_throughput"),
	}, title: regexp.MustCompile(`^Benchmark \.\.\.$`), forms: []lineForm{{"latency:",
		regexp.MustCompile(`^(Prefill|Decode|Total)\. +(?:median )?latency:`),
		regexp.MustCompile(`(?P<label>(?:median )?(?:latency|throughput)): +` + digits + ` (?:s|token/s)(?:,|$)`)}}},
	{format: oneBatchServerFormat, needs: []string{"output_throughput", "batch_latency_mean"},
		gap: [2]string{"Warmup Begin", "Warmup End"}, means: map[string]meaning{
			"#Input tokens":     inputTokens,
			"#Output tokens":    outputTokens,
			"batch size":        requests,
			"latency":           seconds("batch_latency_mean"),
			"input throughput":  metric("prefill_throughput"),
			"output throughput": ownMetric("output_throughput", afterLastToken),
			"last_ttft":         seconds("ttft_max"),
		}, forms: []lineForm{{": ", regexp.MustCompile(`^(?:latency|(?:input|output) throughput|last_ttft): .* (?:s|tok/s)$`),
			regexp.MustCompile(`^(?P<label>[a-z_ ]+): ` + digits + ` (?:s|tok/s)$`)}}},
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
	// trtllm-serve's client, where the server measures energy:
	"Total Energy (J)":                          metric("energy"),
	"Total GPU Power (W)":                       metric("gpu_power"),
	"Output Tokens per Second per Watt (tps/W)": metric("output_per_watt"),
}

var (
	blockStatistics = regexp.MustCompile(`^(?P<stat>\S+) (?P<of>TTFT|TPOT|ITL|E2EL|E2E Latency) \(ms\)$`)
	blockFamilies   = map[string]string{"TTFT": "ttft", "TPOT": "tpot", "ITL": "itl", "E2EL": "request_latency",
		"E2E Latency": "request_latency"}
)

// speculation is the warning about decoding statistics.
const speculation = "speculative decoding was on: its acceptance depends on the text, which a perfect router makes " +
	"meaningless; compare step times of equal batches"

func readTRTLLMReport(r *report, doc *document) {
	r.countTokens()
	r.lengths = Lengths{r.rootMeanSquare(doc, "dataset/isl_stats"), r.rootMeanSquare(doc, "dataset/osl_stats")}
	if doc.values["decoding_stats"] != nil {
		r.warn(speculation)
	}
}

func readClient(r *report, doc *document) {
	r.lengths = Lengths{r.rootMeanSquare(doc, "input_lens"), r.rootMeanSquare(doc, "output_lens")}
	asked, ok := r.number(doc, "num_prompts")
	if ok && strings.HasPrefix(r.name, servingFormat) && !r.work.Errors.Known && r.work.Requests.Known {
		r.work.Errors = Exactly(max(0, int64(asked)-r.work.Requests.N))
	}
	if accepted, ok := r.number(doc, "accept_length"); ok && accepted > 1 {
		r.warn(speculation)
	}
}

func isAIPerf(d *document) bool {
	return slices.ContainsFunc([]string{"output_token_throughput/", "request_throughput/",
		"records/output_token_throughput/", "records/request_throughput/"},
		func(at string) bool { return d.has(at+"unit", at+"avg") })
}

// readAIPerf also sums the error summary, which lists failed requests by kind even where
// error_request_count is null.
func readAIPerf(r *report, doc *document) {
	if v, ok := r.value(doc, "was_cancelled"); ok && v == true {
		r.fail(doc.line, input.Error{Expected: "a complete run", Found: "was_cancelled: true", Try: "repeat the run"})
	}
	sum, kinds := 0.0, 0
	for _, path := range doc.paths {
		if strings.HasPrefix(path, "error_summary/") && strings.HasSuffix(path, "/count") {
			n, _ := r.number(doc, path)
			sum, kinds = sum+float64(n), kinds+1
		}
	}
	l, _ := doc.values["error_summary"].(*list)
	if l != nil && l.dropped == 0 && kinds == len(l.items) && !r.work.Errors.Known {
		r.count(doc.line, failures.metric, &r.work.Errors, sum)
	}
	r.countTokens()
	at := ""
	if doc.has("records") {
		at = "records/"
	}
	r.lengths = Lengths{r.rootMeanSquare(doc, at+"input_sequence_length"),
		r.rootMeanSquare(doc, at+"output_sequence_length")}
}

// readBatch counts the tokens of a batch of equal requests.
func readBatch(r *report, doc *document) {
	r.inputLength, _ = r.number(doc, "input_len")
	r.outputLength, _ = r.number(doc, "output_len")
	r.countTokens()
}

// readMoE reads the result of TensorRT-LLM's bench_moe, which times one MoE layer
// (tests/microbenchmarks/bench_moe). A file may hold several workloads, which are several
// measurements: a rule with --metric then chooses one.
func readMoE(r *report, doc *document) {
	if l, ok := doc.values["results"].(*list); !ok || len(l.items) != 1 {
		n := 0
		if ok {
			n = len(l.items)
		}
		r.fail(doc.line, input.Error{Expected: "one workload in results", Found: strconv.Itoa(n),
			Try: "--metric 'moe_latency:ms:lower=$.results[0].latency_ms.score'"})
		return
	}
	const actual = "results/0/routing_control/actual/"
	r.proof.Perfect, r.proof.Claimed = doc.values[actual+"enable_perfect_router"].(bool)
	slots, _ := r.list(doc, actual+"observed_dispatch_matrix_summary/col_sums")
	if len(slots) > maxRanks {
		r.fail(doc.line, input.Error{Expected: "at most " + strconv.Itoa(maxRanks) + " ranks", Found: strconv.Itoa(len(slots))})
		return
	}
	total, ranks := router.Number(0), router.Number(len(slots))
	for _, n := range slots {
		total += n
	}
	if total > 0 { // {1536, 171, 171, 170} → max/mean 3.00, floor 1
		r.proof.Ranks, r.proof.RankFloor = len(slots), router.Number(math.Ceil(float64(total/ranks)))*ranks/total
		r.proof.Layers = []LayerBalance{{0, router.Undefined(), slices.Max(slots) * ranks / total}}
	}
}

// processor is the built-in workload's clock of processor time.
const processor = "cpu"

// readWorkload reads the JSON line of the built-in workload, and of the H200 program that recorded the
// captures, whose first_iterations_ms are its warm-up and are not used: one object per launch.
//
//	tokens_per_second       tokens of all ranks per second of timed steps: the primary metric
//	iteration_ms[]          every timed step: mean, median and minimum of the step time
//	clock                   which time that is; absent or "wall" is wall time
//	perfect_router, ranks   the launch's own word on the treatment
//	expert_max_over_mean[], rank_max_over_mean[]   per layer
//	expert_floor, rank_floor   where given: the least of these that whole slots allow
func readWorkload(r *report, doc *document) {
	clock := elapsed
	switch v, ok := r.value(doc, "clock"); {
	case v == processor:
		clock = processor
	case ok && v != "wall":
		r.wrong(doc, "clock", "wall or "+processor, v)
	}
	put := func(name string, v router.Number) {
		m := metricOf(name, r.rule, "", v)
		if clock == processor {
			m.Definition += "; time is processor time: of each phase, that of the rank that used most"
		}
		r.metric(doc.line, m)
	}
	if v, ok := r.number(doc, "tokens_per_second"); ok {
		put("token_throughput", v)
	}
	if steps, ok := r.list(doc, "iteration_ms"); ok && len(steps) > 0 {
		r.timed(steps, 1, clock)
		mean, median, least := summary(steps)
		put("step_time_mean", mean)
		put("step_time_p50", median)
		put("step_time_min", least)
	}
	perfect, ok := doc.values["perfect_router"].(bool)
	if !ok {
		r.wrong(doc, "perfect_router", "true or false", doc.values["perfect_router"])
	}
	r.proof.Ranks, r.proof.Perfect, r.proof.Claimed = r.size(doc, "ranks"), perfect, true
	experts, haveExperts := r.list(doc, "expert_max_over_mean")
	ranks, haveRanks := r.list(doc, "rank_max_over_mean")
	if haveExperts && haveRanks && len(experts) != len(ranks) {
		r.fail(doc.line, input.Error{Expected: quantity.Count(len(experts), "layer") +
			" in rank_max_over_mean as in expert_max_over_mean", Found: strconv.Itoa(len(ranks))})
		return
	}
	r.proof.Layers = nil
	for i := range max(len(experts), len(ranks)) {
		layer := LayerBalance{i, router.Undefined(), router.Undefined()}
		if haveExperts {
			layer.ExpertMaxOverMean = experts[i]
		}
		if haveRanks {
			layer.RankMaxOverMean = ranks[i]
		}
		r.proof.Layers = append(r.proof.Layers, layer)
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
