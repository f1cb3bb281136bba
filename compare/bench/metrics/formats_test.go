package metrics

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// expectation is what a report says, read off by hand: its format, its metrics, the primary one first, and its amounts,
// and parts of its warnings, one a line.
type expectation struct{ says, warns string }

const eightRanks = "output_throughput=2560 total_throughput=5120 user_throughput=324 user_speed_mean=330.11 " +
	"user_speed_p50=333 ttft_p50=60 ttft_max=80 tpot_p90=3.2 request_latency_mean=3160 duration=4000 requests=10 " +
	"input_tokens=10240 output_tokens=10240 ranks=8"

// fixtures are the expectations of testdata/outputs. Numbers of ais_bench are from vllm-project/vllm-ascend's
// documentation of Hunyuan-A13B, of evalscope from vLLM's pull request 27776, of mini-sglang from its request 59, of
// guidellm from rsevilla87/guidellm-results-parser, of llmperf from philschmid.de's benchmark of Llama 3 on Inferentia2,
// of llama-bench from its build 11265 on an RTX 3090, of inference-perf from its demo of batch sizes, of SGLang's
// configured logger and of Triton's log from SGLang's request 11854 and tensorrtllm_backend's issue 217.
var fixtures = map[string]expectation{
	"trtllm-bench-a.txt": {"trtllm-bench/stdout output_throughput=640 request_throughput=10 duration=4000 " +
		"request_latency_mean=3000 ttft_mean=90 tpot_mean=46.1905 requests=40 input_tokens=5120 output_tokens=2560", ""},
	"trtllm-bench-b.txt": {"trtllm-bench/stdout output_throughput=640 total_throughput=3200 user_throughput=21 " +
		"user_speed_mean=21.4466 tpot_p50=46.6 tpot_p99=48 tpot_min=46 tpot_mean=46.6275 request_latency_p95=12400 " +
		"request_latency_max=12500 requests=32 input_tokens=32768 output_tokens=8192 ranks=4", ""},
	"trtllm-bench-c.txt": {"trtllm-bench/stdout " + eightRanks, ""},
	"trtllm-report.json": {"trtllm-bench/report-json " + eightRanks, ""},
	// 34 whole rows and a cut one. Rows 2 to 31 are decode steps of the full
	// batch, 4 requests: 30 of them, of which a tenth is warm-up. The 27 left
	// are rows 5 to 31: 14 odd ones of 11.25 ms and 13 even ones of 11 ms.
	"iteration-log.txt": {"iteration-log step_time_mean=11.12962962962963 step_time_p50=11.25",
		"27 of 34\nline 35: want a whole JSON object, have one that ends before"},
	"print-iter-log-1.txt": {"iteration-log step_time_mean=12.5", "5 of 6"},
	"print-iter-log-2.txt": {"iteration-log step_time_mean=12.5", ""},
	// Two ranks, rows 102 to 107. The time of row i stands in row i+1: 11 … 15
	// on rank 0 and 12 … 16 on rank 1, which is slower in each; the last row of each has none.
	"print-iter-log-3.txt": {"iteration-log step_time_mean=14 step_time_p50=14", "10 of 12"},
	// Row 106 is missing, so nobody knows the device time of row 105.
	"print-iter-log-4.txt": {"iteration-log step_time_mean=10.8", "3 of 5 iteration rows"},
	"serving-trtllm.txt": {"serving/stdout output_throughput=256 total_throughput=2304 user_throughput=80 duration=4000 " +
		"ttft_mean=50 ttft_p50=49 ttft_p99=61.2 itl_p99=30.1 request_latency_p99=1700 requests=8 input_tokens=8192 " +
		"output_tokens=1024 errors=0", ""},
	"serving-trtllm.json": {"serving/json output_throughput=224 request_goodput=1.5 tpot_p99=13.5 user_throughput=80 " +
		"duration=4000 requests=7 input_tokens=7168 output_tokens=896 errors=1", ""},
	"serving-vllm.jsonl": {"serving/json output_throughput=256 total_throughput=2304 ttft_p50=49 itl_mean=12.1 " +
		"requests=8 input_tokens=8192 output_tokens=1024 errors=0", ""},
	"serving-sglang.jsonl": {"sglang-serving/json output_throughput=256 input_throughput=2048 request_latency_p99=1700 " +
		"itl_p95=20 itl_p99=NaN requests=8 input_tokens=8192 output_tokens=1024", ""},
	"serving-sglang.txt": {"sglang-serving/stdout output_throughput=256 input_throughput=2048 request_latency_p50=1580 " +
		"itl_p95=20 itl_max=44 requests=8 input_tokens=8192 output_tokens=1024", ""},
	"sglang-offline.txt": {"sglang-offline/stdout output_throughput=2235.33 total_throughput=5839.65 duration=173880 " +
		"requests=2000 input_tokens=626729 output_tokens=388685", ""},
	"sglang-offline.jsonl": {"sglang-offline/json output_throughput=2235.33 input_throughput=3604.32 duration=173880 " +
		"requests=2000 input_tokens=626729 output_tokens=388685", ""},
	// 32 requests at 800 and 640 tokens/s, two of them a step: 80 ms on rank 0 and 100 on rank 1, which is slower
	"sglang-decode.log": {"iteration-log step_time_mean=100 step_time_p50=100", "8 of 8"},
	// --log_iteration_data has no times: which iterations are worth recording
	"triton-iterations.log": {"iteration-log", "no times of steady decode steps\n8 to 17 (full decode)"},
	"mini-sglang.txt":       {"mini-sglang output_throughput=2409 request_throughput=6.8232 duration=146560", ""},
	"vllm-throughput.txt": {"vllm-throughput/stdout output_throughput=2560 total_throughput=5120 request_throughput=2.5 " +
		"input_tokens=10240 output_tokens=10240", ""},
	"vllm-throughput.json": {"vllm-throughput/json total_throughput=5120 request_throughput=2.5 duration=4000 " +
		"requests=10", ""},
	"vllm-latency.txt":  {"vllm-latency/stdout batch_latency_mean=402 batch_latency_p10=395 batch_latency_p99=420", ""},
	"vllm-latency.json": {"vllm-latency/json batch_latency_mean=402 batch_latency_p50=401", ""},
	"aiperf.json": {"aiperf output_throughput=2560 request_throughput=2.5 ttft_p99=61.2 tpot_p50=12 itl_p99=30.1 " +
		"itl_mean=12.1 user_speed_mean=82.6 duration=25600 request_latency_min=1400 requests=64 input_tokens=65536 " +
		"output_tokens=8192 errors=0", ""},
	"aiperf-table.txt": {"aiperf output_throughput=287.44 request_throughput=0.27 ttft_p99=59.53 user_speed_mean=294.11 " +
		"request_latency_mean=3651.23 requests=20 input_tokens=11000 output_tokens=21169", ""},
	"genai-perf.json": {"aiperf output_throughput=2560 ttft_p50=49 tpot_mean=12.1 requests=64 input_tokens=65536 " +
		"output_tokens=8192", ""},
	"genai-perf-table.txt": {"aiperf output_throughput=520.87 request_throughput=1.99 ttft_min=12.39", ""},
	"ais-bench.txt": {"ais_bench output_throughput=96.6928 request_latency_p99=40973.9 request_latency_mean=29982.6 " +
		"duration=41161.2934 requests=8 input_tokens=11660 output_tokens=3980 errors=0", ""},
	"evalscope.txt": {"evalscope output_throughput=665.335 duration=76115.7 request_latency_mean=47414.1 " +
		"ttft_mean=14267.8 tpot_mean=95.4 itl_mean=88 requests=100 errors=0", ""},
	"guidellm.json": {"guidellm/json output_throughput=1251.5371956866534 total_throughput=2426.93797445331 " +
		"request_throughput=9.777764697593275 request_latency_p50=2330.3864002227783 ttft_mean=1006.2143587008272 " +
		"tpot_mean=10.423929083078537 requests=586 input_tokens=70444 output_tokens=75008 errors=0", ""},
	"inference-perf.json": {"inference-perf/json output_throughput=2366.1706737582767 " +
		"request_latency_p99.9=640.7534108272522 ttft_p50=30.646827479358763 tpot_mean=4.123063848553224 itl_p99=14.5 " +
		"requests=2278 input_tokens=455600 output_tokens=143514 errors=0", ""},
	"inferencex.json":   {"inferencex/json gpu_throughput=567.89 ttft_mean=123 ttft_p99=900 tpot_p50=4.5", ""},
	"llama-bench.jsonl": {"llama-bench/json total_throughput=194.766477", ""},
	"llmperf.json": {"llmperf/json output_throughput=132.8 user_throughput=16.9 ttft_mean=5505.33 ttft_p25=5100 " +
		"ttft_min=4900 request_latency_p99=9800 requests=52 input_tokens=28626 output_tokens=7813 errors=0", ""},
	"mlperf-summary.txt": {"mlperf/summary output_throughput=22212.2 request_throughput=33.6903", ""},
}

// samples are reports as public sources show them, with what they say.
var samples = []struct {
	text string
	want expectation
}{
	// SGLang's client of 2024 (datacrunch-research/h200-benchmarks @c091ef530a52), no request_throughput; the peak of 36272
	{`{"backend": "sglang", "dataset_name": "random", "request_rate": Infinity, "max_concurrency": null,
		"max_output_tokens_per_s": 5.0, "total_input_tokens": 10000, "total_output_tokens": 5120000, "total_output_tokens_retokenized": 5115342,
		"median_ttft_ms": 10014.104524045251, "mean_e2e_latency_ms": 381236.82297268615,
		"output_throughput": 12412.394674113431, "duration": 412.49091206211597, "completed": 10000}`,
		expectation{"sglang-serving/json output_throughput=12412.394674113431 ttft_p50=10014.104524045251 " +
			"request_latency_mean=381236.82297268615 duration=412490.91206211597 requests=10000 input_tokens=10000 " +
			"output_tokens=5120000", "the peak of 5.00 tok/s lies below the mean of 12412.39"}},
	// the keys that vLLM's pull request 29495 adds
	{`{"elapsed_time": 120.5, "num_requests": 1000, "total_num_tokens": 6514, "total_input_tokens": 5014,
		"total_output_tokens": 1500, "requests_per_second": 8.30, "tokens_per_second": 1244.81,
		"output_tokens_per_second": 1072.15}`,
		expectation{"vllm-throughput/json output_throughput=1072.15 total_throughput=1244.81 request_throughput=8.3 " +
			"requests=1000 input_tokens=5014 output_tokens=1500", ""}},
	{"Scenario : Offline\nTokens per second: 22212.2\nResult is : INVALID\n",
		expectation{"mlperf/summary output_throughput=22212.2", "MLPerf's loadgen calls this result invalid"}},
	// vLLM of July 2023 (its issue 359)
	{"Total time: 166.88 s\nThroughput: 5.99 requests/s\nAverage latency: 67.59 s\n",
		expectation{"vllm-throughput/stdout request_throughput=5.99", ""}},
	// AIPerf of October 2025 (ai-dynamo/aiperf @7c31f57933ad, examples/artifacts/run1); 11 errors
	{`{"records": {"error_request_count": {"unit": "requests", "avg": 11.0, "min": null}, "ttft": {"unit": "ms",
		"avg": 2343.219, "p99": 3833.389}, "request_count": {"unit": "requests", "avg": 89.0}, "total_isl": {"unit": "tokens",
		"avg": 48950.0}, "total_osl": {"unit": "tokens", "avg": 21624.0}, "benchmark_duration": {"unit": "sec",
		"avg": 9.317788951}, "request_throughput": {"unit": "requests/sec", "avg": 9.5516}, "output_token_throughput":
		{"unit": "tokens/sec", "avg": 2320.722}}, "error_summary": [{"count": 11}]}`,
		expectation{"aiperf output_throughput=2320.722 ttft_p99=3833.389 ttft_mean=2343.219 duration=9317.788951 " +
			"requests=89 input_tokens=48950 output_tokens=21624 errors=11", ""}},
	// an error summary beside a null count (nvda-ci/aiperf @8e6a033d162b): 81 + 3
	{`{"request_throughput": {"unit": "requests/sec", "avg": 13.1608}, "request_count": {"unit": "requests", "avg": 200.0},
		"error_summary": [{"count": 81}, {"error_details": {"code": 500}, "count": 3}], "error_request_count": null,
		"goodput": null}`, expectation{"aiperf request_throughput=13.1608 requests=200 errors=84", ""}},
	// AIPerf's CSV (NVIDIA/cloudai, its AI Dynamo documentation), and genai-perf's with a thousand
	{"Metric,avg,min,max,p25,p50,p75,p99,std\nInter Token Latency (ms),2.81,2.66,2.88,2.79,2.83,2.84,2.87,0.04\n\n" +
		"Metric,Value\nOutput Token Throughput (tokens/sec),598.78\nTotal Token Throughput (tokens/sec),962.32\n" +
		"Request Throughput (requests/sec),1.20\nRequest Count,50.00\n",
		expectation{"aiperf output_throughput=598.78 total_throughput=962.32 request_throughput=1.2 tpot_p99=2.87 " +
			"tpot_mean=2.81 requests=50", ""}},
	{"Metric,Value\r\nOutput Token Throughput (tokens/sec),\"1,456.00\"\r\nRequest Throughput (per sec),123.00\r\n" +
		"Request Count (count),3.00\r\n", expectation{"aiperf output_throughput=1456 request_throughput=123 requests=3", ""}},
	// SGLang's bench_one_batch_server, after the block of its warm-up
	{"======== Warmup Begin ========\n" + oneBatch("256", "1477.75") + "======== Warmup End   ========\n\n" +
		oneBatch("16384", "1340.45"),
		expectation{"sglang-one-batch-server/stdout output_throughput=1340.45 prefill_throughput=50249.39 ttft_max=330 " +
			"batch_latency_mean=500 requests=16 input_tokens=16384 output_tokens=16384", ""}},
	// its bench_one_batch
	{`{"run_name": "test_run", "batch_size": 8, "input_len": 1024, "output_len": 1024, "prefill_latency": 7.16,
		"prefill_throughput": 1143.7, "median_decode_latency": 0.0231, "median_decode_throughput": 346.3,
		"total_latency": 30.8, "overall_throughput": 531.7}`,
		expectation{"sglang-one-batch/json total_throughput=531.7 decode_latency_p50=23.1 prefill_latency_mean=7160 " +
			"requests=8 input_tokens=8192 output_tokens=8192", ""}},
	{"Warmup ...\nTotal. latency:  9.00 s, throughput: 9.00 token/s\nBenchmark ...\n" +
		"Prefill. latency: 0.50 s, throughput: 2048.00 token/s\n" +
		"Decode.  median latency: 0.01000 s, median throughput: 800.00 token/s\n" +
		"Total. latency:  1.00 s, throughput: 2000.00 token/s\n",
		expectation{"sglang-one-batch/stdout total_throughput=2000 decode_latency_p50=10 decode_throughput=800 " +
			"prefill_throughput=2048 batch_latency_mean=1000", ""}},
	// TensorRT-LLM's bench_moe
	{`{"benchmark": "bench_moe", "environment": {"world_size": 4}, "model": {"name": "deepseek_v3", "top_k": 8},
		"results": [{"workload": {"num_tokens": 256}, "actual_config": {"backend": "TRTLLM"}, "status": "success",
		"latency_ms": {"score": 1.24, "raw_score": 1.2533}, "routing_control": {"actual": {"enable_perfect_router": false,
		"observed_dispatch_matrix_summary": {"col_sums": [1536, 171, 171, 170]}}}}], "rankings": []}`,
		expectation{"trtllm-bench-moe/json moe_latency=1.24 ranks=4", ""}},
	// its report, cut: lengths of a mean request are no work without the number of requests
	{`{"performance": {"system_output_throughput_tok_s": 5, "request_throughput_req_s": 1, "total_latency_ms": 2},
		"request_info": {"avg_input_length": 128}, "engine": {}}`,
		expectation{"trtllm-bench/report-json output_throughput=5 request_throughput=1 duration=2", ""}},
	// trtllm-bench 0.12
	{"===\n= STATISTICS\n===\nNumber of requests:   3000\nAverage Input Length (tokens):  128.0\n" +
		"Average Output Length (tokens): 128.0\nToken Throughput (tokens/sec):  23405.927228471104\n" +
		"Request Throughput (req/sec):   182.8588064724305\nTotal Latency (seconds):        16.406100739\n",
		expectation{"trtllm-bench/stdout output_throughput=23405.927228471104 request_throughput=182.8588064724305 " +
			"duration=16406.100739 requests=3000 input_tokens=384000 output_tokens=384000", ""}},
	// steps of SGLang in which each of 32 requests accepts 2 tokens
	{"Decode batch, #running-req: 32, accept len: 2.00, gen throughput (token/s): 1600.00, #queue-req: 0\n",
		expectation{"iteration-log step_time_mean=40", ""}},
	// the built-in workload: four steps of 4, 1, 2 and 3 ms
	{`{"perfect_router": false, "ranks": 2, "tokens_per_rank": 3, "tokens_per_second": 12.5, "iteration_ms": [4, 1, 2, 3],
		"expert_max_over_mean": [2, 3], "rank_max_over_mean": [1.5, NaN]}`,
		expectation{"moebalance-workload token_throughput=12.5 step_time_mean=2.5 step_time_p50=2.5 ranks=2", ""}},
	// trtllm-serve's /metrics: rows on one line
	{`[{"iter": 1, "iterLatencyMS": 2.5, "hostStepTimeMS": 2}, {"iter": 2, "iterLatencyMS": 3.5, "hostStepTimeMS": 3},` +
		`{"iter": 3, "iterLatencyMS": 4, "hostStepTimeMS": 4}]` + "\nspeed: 4\n",
		expectation{"iteration-log", "no times of steady decode steps"}},
}

func oneBatch(out, speed string) string {
	return "#Input tokens: 16384\n#Output tokens: " + out + "\nbatch size: 16\ninput_len: 1024\noutput_len: 16\n" +
		"latency: 0.50 s\ninput throughput: 50249.39 tok/s\noutput throughput: " + speed + " tok/s\nlast_ttft: 0.33 s\n" +
		"last generation throughput: 1337.26 tok/s\n"
}

// fixture is a file of testdata/outputs.
func fixture(name string) string {
	return string(require.Value(os.ReadFile(filepath.Join("../../../testdata/outputs", name))))
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
func (e expectation) check(t *testing.T, name, text string) {
	t.Helper()
	got, err := Parse("output", strings.NewReader(text), nil)
	amounts := map[string]float64{ranks: float64(got.Proof.Ranks)}
	for _, amount := range []string{requests, inputTokens, outputTokens, failures} {
		if n, ok := got.Work[amount]; ok {
			amounts[amount] = n
		}
	}
	format, says, _ := strings.Cut(e.says, " ")
	if primary, _, _ := strings.Cut(says, "="); err != nil || got.Format != format || got.Primary != primary {
		t.Errorf("%.80s: %q with primary %q, want %q with %q, error %v", name, got.Format, got.Primary, format, primary, err)
		return
	}
	for _, said := range strings.Fields(says) {
		what, text, _ := strings.Cut(said, "=")
		v := require.Value(strconv.ParseFloat(text, 64))
		m, ok := got.Metric(what)
		if n, amount := amounts[what]; amount {
			m.Value, ok = router.Number(n), true
		}
		delete(amounts, what)
		if !ok || math.IsNaN(float64(m.Value)) != math.IsNaN(v) || math.Abs(float64(m.Value)-v) > 1e-9*math.Abs(v) {
			t.Errorf("%.80s: %s = %v (there: %v), want %v", name, what, m.Value, ok, v)
		}
	}
	if len(amounts) > 1 || amounts[ranks] > 0 {
		t.Errorf("%.80s: more than wanted: %v", name, amounts)
	}
	if p := got.Proof; got.Primary == "moe_latency" && (p.RankFloor != 1 || p.Layers[0].RankMaxOverMean != 3) {
		t.Errorf("%.80s: %+v", name, p)
	}
	all := strings.Join(got.Warnings, "\n")
	for warning := range strings.SplitSeq(e.warns, "\n") {
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
		m, _ := require.Value(Parse("output", strings.NewReader(fixture(file)), nil)).Metric("ttft_p50")
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
		r, err := Parse("r.json", strings.NewReader(strings.ReplaceAll(report, "ASKED", asked)), nil)
		if err != nil || r.Work[failures] != failed || len(r.Warnings) != int(failed) {
			t.Errorf("%s asked for: %+v, error %v", asked, r, err)
		}
	}
}
