package metrics

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

// expectation is what a report says, read off by hand.
type expectation struct {
	format, primary string
	values          map[string]float64
	work            []float64 // requests, input tokens, output tokens, failed requests; −1 where it says nothing
	ranks           int
	warns           string // parts of its warnings, one a line
}

// fixtures are the expectations of testdata/outputs.
var fixtures = map[string]expectation{
	"trtllm-bench-a.txt": {"trtllm-bench/stdout", "output_throughput", map[string]float64{"output_throughput": 640,
		"request_throughput": 10, "duration": 4000, "request_latency_mean": 3000, "ttft_mean": 90, "tpot_mean": 46.1905},
		[]float64{40, 5120, 2560, -1}, 0, ""},
	"trtllm-bench-b.txt": {"trtllm-bench/stdout", "output_throughput", map[string]float64{"output_throughput": 640,
		"total_throughput": 3200, "user_throughput": 21, "user_speed_mean": 21.4466, "tpot_p50": 46.6,
		"tpot_p99": 48, "tpot_min": 46, "tpot_mean": 46.6275, "request_latency_p95": 12400, "request_latency_max": 12500},
		[]float64{32, 32768, 8192, -1}, 4, ""},
	"trtllm-bench-c.txt": {"trtllm-bench/stdout", "output_throughput", eightRanks, []float64{10, 10240, 10240, -1}, 8, ""},
	"trtllm-report.json": {"trtllm-bench/report-json", "output_throughput", eightRanks, []float64{10, 10240, 10240, -1},
		8, ""},
	// 34 whole rows and a cut one. Rows 2 to 31 are decode steps of the full
	// batch, 4 requests: 30 of them, of which a tenth is warm-up. The 27 left
	// are rows 5 to 31: 14 odd ones of 11.25 ms and 13 even ones of 11 ms.
	"iteration-log.txt": {"iteration-log", "step_time_mean", map[string]float64{
		"step_time_mean": (14*11.25 + 13*11) / 27, "step_time_p50": 11.25}, nil, 0,
		"27 of 34\nline 35: want a whole JSON object, have one that ends before"},
	"print-iter-log-1.txt": {"iteration-log", "step_time_mean", map[string]float64{"step_time_mean": 12.5}, nil, 0,
		"5 of 6"},
	"print-iter-log-2.txt": {"iteration-log", "step_time_mean", map[string]float64{"step_time_mean": 12.5}, nil, 0, ""},
	// Two ranks, rows 102 to 107. The time of row i stands in row i+1: 11 … 15
	// on rank 0 and 12 … 16 on rank 1, which is slower in each; the last row of each has none.
	"print-iter-log-3.txt": {"iteration-log", "step_time_mean", map[string]float64{"step_time_mean": 14,
		"step_time_p50": 14}, nil, 0, "10 of 12"},
	// Row 106 is missing, so nobody knows the device time of row 105.
	"print-iter-log-4.txt": {"iteration-log", "step_time_mean", map[string]float64{"step_time_mean": 10.8}, nil, 0,
		"3 of 5 iteration rows"},
	"serving-trtllm.txt": {"serving/stdout", "output_throughput", map[string]float64{"output_throughput": 256,
		"total_throughput": 2304, "user_throughput": 80, "duration": 4000, "ttft_mean": 50, "ttft_p50": 49, "ttft_p99": 61.2,
		"itl_p99": 30.1, "request_latency_p99": 1700}, []float64{8, 8192, 1024, 0}, 0, ""},
	"serving-trtllm.json": {"serving/json", "output_throughput", map[string]float64{"output_throughput": 224,
		"request_goodput": 1.5, "tpot_p99": 13.5, "user_throughput": 80, "duration": 4000},
		[]float64{7, 7168, 896, 1}, 0, ""},
	"serving-vllm.jsonl": {"serving/json", "output_throughput", map[string]float64{"output_throughput": 256,
		"total_throughput": 2304, "ttft_p50": 49, "itl_mean": 12.1}, []float64{8, 8192, 1024, 0}, 0, ""},
	"serving-sglang.jsonl": {"sglang-serving/json", "output_throughput", map[string]float64{"output_throughput": 256,
		"input_throughput": 2048, "request_latency_p99": 1700, "itl_p95": 20, "itl_p99": math.NaN()},
		[]float64{8, 8192, 1024, -1}, 0, ""},
	"serving-sglang.txt": {"sglang-serving/stdout", "output_throughput", map[string]float64{"output_throughput": 256,
		"input_throughput": 2048, "request_latency_p50": 1580, "itl_p95": 20, "itl_max": 44},
		[]float64{8, 8192, 1024, -1}, 0, ""},
	"vllm-throughput.txt": {"vllm-throughput/stdout", "output_throughput", map[string]float64{"output_throughput": 2560,
		"total_throughput": 5120, "request_throughput": 2.5}, []float64{-1, 10240, 10240, -1}, 0, ""},
	"vllm-throughput.json": {"vllm-throughput/json", "total_throughput", map[string]float64{"total_throughput": 5120,
		"request_throughput": 2.5, "duration": 4000}, []float64{10, -1, -1, -1}, 0, ""},
	"vllm-latency.txt": {"vllm-latency/stdout", "batch_latency_mean", map[string]float64{"batch_latency_mean": 402,
		"batch_latency_p10": 395, "batch_latency_p99": 420}, nil, 0, ""},
	"vllm-latency.json": {"vllm-latency/json", "batch_latency_mean", map[string]float64{"batch_latency_mean": 402,
		"batch_latency_p50": 401}, nil, 0, ""},
	"aiperf.json": {"aiperf", "output_throughput", map[string]float64{"output_throughput": 2560, "request_throughput": 2.5,
		"ttft_p99": 61.2, "tpot_p50": 12, "itl_p99": 30.1, "itl_mean": 12.1, "user_speed_mean": 82.6, "duration": 25600,
		"request_latency_min": 1400}, []float64{64, 65536, 8192, 0}, 0, ""},
	"genai-perf.json": {"aiperf", "output_throughput", map[string]float64{"output_throughput": 2560, "ttft_p50": 49,
		"tpot_mean": 12.1}, []float64{64, 65536, 8192, -1}, 0, ""},
}

var eightRanks = map[string]float64{"output_throughput": 2560, "total_throughput": 5120, "user_throughput": 324,
	"user_speed_mean": 330.11, "user_speed_p50": 333, "ttft_p50": 60, "ttft_max": 80, "tpot_p90": 3.2,
	"request_latency_mean": 3160, "duration": 4000}

// samples are reports as public sources show them, with what they say.
var samples = []struct {
	text string
	want expectation
}{
	// SGLang's client of 2024 (datacrunch-research/h200-benchmarks @c091ef530a52): no request_throughput
	{`{"backend": "sglang", "dataset_name": "random", "request_rate": Infinity, "max_concurrency": null,
		"total_input_tokens": 10000, "total_output_tokens": 5120000, "total_output_tokens_retokenized": 5115342,
		"median_ttft_ms": 10014.104524045251, "mean_e2e_latency_ms": 381236.82297268615,
		"output_throughput": 12412.394674113431, "duration": 412.49091206211597, "completed": 10000}`,
		expectation{"sglang-serving/json", "output_throughput", map[string]float64{"output_throughput": 12412.394674113431,
			"ttft_p50": 10014.104524045251, "request_latency_mean": 381236.82297268615, "duration": 412490.91206211597},
			[]float64{10000, 10000, 5120000, -1}, 0, ""}},
	// the keys that vLLM's pull request 29495 adds
	{`{"elapsed_time": 120.5, "num_requests": 1000, "total_num_tokens": 6514, "total_input_tokens": 5014,
		"total_output_tokens": 1500, "requests_per_second": 8.30, "tokens_per_second": 1244.81,
		"output_tokens_per_second": 1072.15}`,
		expectation{"vllm-throughput/json", "output_throughput", map[string]float64{"output_throughput": 1072.15,
			"total_throughput": 1244.81, "request_throughput": 8.3}, []float64{1000, 5014, 1500, -1}, 0, ""}},
	// AIPerf of October 2025 (ai-dynamo/aiperf @7c31f57933ad, examples/artifacts/run1); 11 errors
	{`{"records": {"error_request_count": {"unit": "requests", "avg": 11.0, "min": null},
		"ttft": {"unit": "ms", "avg": 2343.219436988764, "p99": 3833.3894000399996, "std": 1049.8},
		"request_count": {"unit": "requests", "avg": 89.0}, "total_isl": {"unit": "tokens", "avg": 48950.0},
		"total_osl": {"unit": "tokens", "avg": 21624.0}, "benchmark_duration": {"unit": "sec", "avg": 9.317788951},
		"request_throughput": {"unit": "requests/sec", "avg": 9.551622221540914},
		"output_token_throughput": {"unit": "tokens/sec", "avg": 2320.7222350404572, "p50": null}},
		"was_cancelled": false, "error_summary": [{"error_details": {"code": 499}, "count": 11}]}`,
		expectation{"aiperf", "output_throughput", map[string]float64{"output_throughput": 2320.7222350404572,
			"ttft_p99": 3833.3894000399996, "ttft_mean": 2343.219436988764, "duration": 9317.788951},
			[]float64{89, 48950, 21624, 11}, 0, ""}},
	// an error summary beside a null count (nvda-ci/aiperf @8e6a033d162b): 81 + 3
	{`{"request_throughput": {"unit": "requests/sec", "avg": 13.16084556379392},
		"time_to_first_token": {"unit": "ms", "avg": 1588.797775365}, "request_count": {"unit": "requests", "avg": 200.0},
		"total_isl": {"unit": "tokens", "avg": 110000.0}, "total_osl": {"unit": "tokens", "avg": 19370.0}, "goodput": null,
		"error_summary": [{"error_details": {"code": 499}, "count": 81}, {"error_details": {"code": 500}, "count": 3}],
		"error_request_count": null}`,
		expectation{"aiperf", "request_throughput", map[string]float64{"request_throughput": 13.16084556379392,
			"ttft_mean": 1588.797775365}, []float64{200, 110000, 19370, 84}, 0, ""}},
	// AIPerf's CSV (NVIDIA/cloudai, its AI Dynamo documentation), and genai-perf's with a thousand
	{"Metric,avg,min,max,p25,p50,p75,p99,std\nInter Token Latency (ms),2.81,2.66,2.88,2.79,2.83,2.84,2.87,0.04\n\n" +
		"Metric,Value\nOutput Token Throughput (tokens/sec),598.78\nTotal Token Throughput (tokens/sec),962.32\n" +
		"Request Throughput (requests/sec),1.20\nRequest Count,50.00\n",
		expectation{"aiperf", "output_throughput", map[string]float64{"output_throughput": 598.78,
			"total_throughput": 962.32, "request_throughput": 1.2}, []float64{50, -1, -1, -1}, 0, ""}},
	{"Metric,Value\r\nOutput Token Throughput (tokens/sec),\"1,456.00\"\r\nRequest Throughput (per sec),123.00\r\n" +
		"Request Count (count),3.00\r\n", expectation{"aiperf", "output_throughput", map[string]float64{
		"output_throughput": 1456, "request_throughput": 123}, []float64{3, -1, -1, -1}, 0, ""}},
	// SGLang's bench_one_batch_server, after the block of its warm-up
	{"======== Warmup Begin ========\n" + oneBatch("256", "1477.75") + "======== Warmup End   ========\n\n" +
		oneBatch("16384", "1340.45"),
		expectation{"sglang-one-batch-server/stdout", "output_throughput", map[string]float64{"output_throughput": 1340.45,
			"prefill_throughput": 50249.39, "ttft_max": 330, "batch_latency_mean": 500},
			[]float64{16, 16384, 16384, -1}, 0, ""}},
	// its bench_one_batch
	{`{"run_name": "test_run", "batch_size": 8, "input_len": 1024, "output_len": 1024, "prefill_latency": 7.16,
		"prefill_throughput": 1143.7, "median_decode_latency": 0.0231, "median_decode_throughput": 346.3,
		"total_latency": 30.8, "overall_throughput": 531.7}`,
		expectation{"sglang-one-batch/json", "total_throughput", map[string]float64{"total_throughput": 531.7,
			"decode_latency_p50": 23.1, "prefill_latency_mean": 7160}, []float64{8, 8192, 8192, -1}, 0, ""}},
	{"Warmup ...\nTotal. latency:  9.00 s, throughput: 9.00 token/s\nBenchmark ...\n" +
		"Prefill. latency: 0.50 s, throughput: 2048.00 token/s\n" +
		"Decode.  median latency: 0.01000 s, median throughput: 800.00 token/s\n" +
		"Total. latency:  1.00 s, throughput: 2000.00 token/s\n",
		expectation{"sglang-one-batch/stdout", "total_throughput", map[string]float64{"total_throughput": 2000,
			"decode_latency_p50": 10, "decode_throughput": 800, "prefill_throughput": 2048, "batch_latency_mean": 1000},
			nil, 0, ""}},
	// TensorRT-LLM's bench_moe
	{`{"benchmark": "bench_moe", "environment": {"world_size": 4}, "model": {"name": "deepseek_v3", "top_k": 8},
		"results": [{"workload": {"num_tokens": 256}, "actual_config": {"backend": "TRTLLM"}, "status": "success",
		"latency_ms": {"score": 1.24, "raw_score": 1.2533}, "routing_control": {"actual": {"enable_perfect_router": false,
		"observed_dispatch_matrix_summary": {"col_sums": [1536, 171, 171, 170]}}}}], "rankings": []}`,
		expectation{"trtllm-bench-moe/json", "moe_latency", map[string]float64{"moe_latency": 1.24}, nil, 4, ""}},
	// trtllm-bench 0.12
	{`===========================================================
= STATISTICS
===========================================================
Number of requests:             3000
Average Input Length (tokens):  128.0
Average Output Length (tokens): 128.0
Token Throughput (tokens/sec):  23405.927228471104
Request Throughput (req/sec):   182.8588064724305
Total Latency (seconds):        16.406100739
`, expectation{"trtllm-bench/stdout", "output_throughput", map[string]float64{"output_throughput": 23405.927228471104,
		"request_throughput": 182.8588064724305, "duration": 16406.100739}, []float64{3000, 384000, 384000, -1}, 0, ""}},
	// the built-in workload: four steps of 4, 1, 2 and 3 ms
	{`{"perfect_router": false, "ranks": 2, "tokens_per_rank": 3, "tokens_per_second": 12.5, "iteration_ms": [4, 1, 2, 3],
		"expert_max_over_mean": [2, 3], "rank_max_over_mean": [1.5, NaN]}`,
		expectation{"moebalance-workload", "token_throughput", map[string]float64{"token_throughput": 12.5,
			"step_time_mean": 2.5, "step_time_p50": 2.5}, nil, 2, ""}},
	// trtllm-serve's /metrics: rows on one line
	{`[{"iter": 1, "iterLatencyMS": 2.5, "hostStepTimeMS": 2}, {"iter": 2, "iterLatencyMS": 3.5, "hostStepTimeMS": 3},` +
		`{"iter": 3, "iterLatencyMS": 4, "hostStepTimeMS": 4}]` + "\nspeed: 4\n",
		expectation{"iteration-log", "", nil, nil, 0, "no times of steady decode steps"}},
	// --log_iteration_data has no times: which iterations are worth recording
	{`{"Iteration Counter": 7, "Active Request Count": 4, "Context Requests": 0, "Scheduled Requests": 4,
		"Total Context Tokens": 0, "Generation Requests": 4, "Timestamp": "11-20-2026 10:00:00"}`,
		expectation{"iteration-log", "", nil, nil, 0, "worth recording\n7 to 16 (full decode)"}},
}

func oneBatch(out, speed string) string {
	return "#Input tokens: 16384\n#Output tokens: " + out + "\nbatch size: 16\ninput_len: 1024\noutput_len: 16\n" +
		"latency: 0.50 s\ninput throughput: 50249.39 tok/s\noutput throughput: " + speed + " tok/s\nlast_ttft: 0.33 s\n" +
		"last generation throughput: 1337.26 tok/s\n"
}

// fixture is a file of testdata/outputs.
func fixture(name string) string {
	b := require.Value(os.ReadFile(filepath.Join("../../../testdata/outputs", name)))
	return string(b)
}

func TestFormats(t *testing.T) {
	for name, want := range fixtures {
		want.check(t, name, fixture(name))
	}
	for _, s := range samples {
		s.want.check(t, s.text, s.text)
	}
}

// check reads a report and compares.
func (want expectation) check(t *testing.T, name, text string) {
	t.Helper()
	got, err := Parse("output", strings.NewReader(text), nil)
	if err != nil || got.Format != want.format || got.Primary != want.primary || got.Proof.Ranks != want.ranks {
		t.Errorf("%.80s: format %q with primary %q of %d ranks, want %q with %q of %d, error %v", name, got.Format,
			got.Primary, got.Proof.Ranks, want.format, want.primary, want.ranks, err)
		return
	}
	for metric, v := range want.values {
		m, ok := got.Metric(metric)
		if !ok || math.IsNaN(float64(m.Value)) != math.IsNaN(v) || math.Abs(float64(m.Value)-v) > 1e-9*math.Abs(v) {
			t.Errorf("%.80s: %s = %v (there: %v), want %v", name, metric, m.Value, ok, v)
		}
	}
	for i, word := range []string{requests, inputTokens, outputTokens, failures} {
		n, ok := got.Work[word]
		if wanted := len(want.work) > 0 && want.work[i] >= 0; ok != wanted || wanted && n != want.work[i] {
			t.Errorf("%.80s: %s %v of work %v, want %v", name, word, n, got.Work, want.work)
		}
	}
	all := strings.Join(got.Warnings, "\n")
	for warning := range strings.SplitSeq(want.warns, "\n") {
		if !strings.Contains(all, warning) {
			t.Errorf("%.80s: warnings %q do not say %q", name, all, warning)
		}
	}
	for _, m := range got.Metrics {
		if !strings.HasPrefix(m.Definition, m.Name+"/") || strings.HasSuffix(m.Definition, "/") ||
			m.HigherIsBetter == (m.Unit == "ms") {
			t.Errorf("%.80s: metric %+v lacks a definition, or has the wrong direction", name, m)
		}
	}
}

// What reports say of the model and of how it was run, read off by hand.
func TestSetup(t *testing.T) {
	for file, want := range map[string]map[string]string{
		"trtllm-report.json": {"model": "deepseek-ai/DeepSeek-R1", "runtime backend": "Pytorch",
			"runtime quantization": "FP8_BLOCK_SCALES", "runtime gpu": "NVIDIA H200", "runtime version": "1.3.0",
			"runtime dtype": "bfloat16", "runtime kv_cache_dtype": "FP8", "runtime tp_size": "8", "runtime pp_size": "1",
			"runtime ep_size": "8", "runtime max_batch_size": "32", "runtime max_num_tokens": "8192",
			"runtime kv_cache_percentage": "0.9", "runtime scheduling_policy": "GUARANTEED_NO_EVICT"},
		"trtllm-bench-c.txt": {"model": "deepseek-ai/DeepSeek-R1", "runtime backend": "PYTORCH",
			"runtime quantization": "FP8_BLOCK_SCALES", "runtime gpu": "NVIDIA H200", "runtime version": "1.3.0",
			"runtime dtype": "bfloat16", "runtime kv_cache_dtype": "FP8", "runtime tp_size": "8", "runtime pp_size": "1",
			"runtime ep_size": "8", "runtime max_batch_size": "32", "runtime max_num_tokens": "8192",
			"runtime kv memory": "90.00%", "runtime scheduling_policy": "GUARANTEED_NO_EVICT"},
		"serving-sglang.jsonl": {"backend": "sglang", "request_rate": "inf", "dataset": "random",
			"random_input_len": "1024", "random_output_len": "128", "random_range_ratio": "1"},
		"serving-trtllm.json": {"model": "openai/gpt-oss-20b", "backend": "openai", "num_prompts": "8",
			"request_rate": "inf", "tokenizer": "openai/gpt-oss-20b", "burstiness": "1"},
		"aiperf.json": {"model": "m"},
	} {
		r, err := Parse("output", strings.NewReader(fixture(file)), nil)
		if err != nil || !maps.Equal(r.Setup, want) {
			t.Errorf("%s: have %v, %v, want %v", file, r.Setup, err, want)
		}
	}
}

// Percentiles of two tools are two quantities; percentiles in a tool's two outputs, and throughputs, are one.
func TestPercentilesOfDifferentToolsDoNotCompare(t *testing.T) {
	median := func(file string) Metric {
		r, _ := Parse("output", strings.NewReader(fixture(file)), nil)
		m, _ := r.Metric("ttft_p50")
		return m
	}
	trtllm := median("trtllm-bench-c.txt")
	if report := median("trtllm-report.json"); report.Metric != trtllm.Metric {
		t.Errorf("%+v and %+v", report, trtllm)
	}
	for _, file := range []string{"aiperf.json", "serving-vllm.jsonl", "genai-perf.json", "serving-sglang.txt"} {
		if trtllm.Metric == median(file).Metric {
			t.Errorf("%s: %+v", file, median(file))
		}
	}
}

// Of three requests that were asked for, two were completed. Speculative decoding is warned about where a step accepts
// more than a token.
func TestClients(t *testing.T) {
	const report = `{"num_prompts": ASKED, "duration": 4, "completed": 2, "total_input_tokens": 200,
		"total_output_tokens": 20, "request_throughput": 0.5, "output_throughput": 5, "accept_length": ASKED}`
	for asked, failed := range map[string]float64{"1": 0, "3": 1} {
		text := strings.ReplaceAll(report, "ASKED", asked)
		r, err := Parse("r.json", strings.NewReader(text), nil)
		if err != nil || r.Work[failures] != failed || len(r.Warnings) != int(failed) {
			t.Errorf("%s asked for: %+v, error %v", asked, r, err)
		}
	}
}
