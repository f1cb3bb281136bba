package metrics

import (
	"strings"
	"testing"
)

// samples are reports as public sources show them, with what they say.
var samples = []struct {
	text string
	want expectation
}{
	// SGLang's bench_offline_throughput (sgl-project/sglang @00d02fb45319), the counts and the time of pull request 1968
	{`====== Offline Throughput Benchmark Result =======
Backend:                                 engine    
Successful requests:                     1000      
Benchmark duration (s):                  28.64     
Total input tokens:                      233369    
Total generated tokens:                  126886    
Last generation throughput (tok/s):      12.50     
Request throughput (req/s):              34.92     
Input token throughput (tok/s):          8148.43   
Output token throughput (tok/s):         4430.38   
Total token throughput (tok/s):          12578.81  
==================================================
`, offline("sglang-offline/stdout")},
	{`{"backend": "engine", "successful_requests": 1000, "total_latency": 28.64, "total_input_tokens": 233369,
		"total_output_tokens": 126886, "request_throughput": 34.92, "input_throughput": 8148.43,
		"output_throughput": 4430.38, "total_throughput": 12578.81}`, offline("sglang-offline/json")},
	// its client of 2024 (datacrunch-research/h200-benchmarks @c091ef530a52): no request_throughput
	{`{"backend": "sglang", "dataset_name": "random", "request_rate": Infinity, "max_concurrency": null,
		"total_input_tokens": 10000, "total_output_tokens": 5120000, "total_output_tokens_retokenized": 5115342,
		"median_ttft_ms": 10014.104524045251, "mean_e2e_latency_ms": 381236.82297268615,
		"output_throughput": 12412.394674113431, "duration": 412.49091206211597, "completed": 10000}`,
		expectation{format: "sglang-serving/json", primary: "output_throughput",
			values: map[string]float64{"output_throughput": 12412.394674113431, "ttft_p50": 10014.104524045251,
				"request_latency_mean": 381236.82297268615, "duration": 412490.91206211597},
			work: Work{Requests: count(10000), InputTokens: count(10000), OutputTokens: count(5120000)}}},
	// the keys that vLLM's pull request 29495 adds
	{`{"elapsed_time": 120.5, "num_requests": 1000, "total_num_tokens": 6514, "total_input_tokens": 5014,
		"total_output_tokens": 1500, "requests_per_second": 8.30, "tokens_per_second": 1244.81,
		"output_tokens_per_second": 1072.15}`, expectation{format: "vllm-throughput/json", primary: "output_throughput",
		values: map[string]float64{"output_throughput": 1072.15, "total_throughput": 1244.81, "request_throughput": 8.3},
		work:   Work{Requests: count(1000), InputTokens: count(5014), OutputTokens: count(1500)}}},
	// AIPerf of October 2025 (ai-dynamo/aiperf @7c31f57933ad, examples/artifacts/run1); 11 errors
	{`{"records": {"error_request_count": {"unit": "requests", "avg": 11.0, "min": null},
		"ttft": {"unit": "ms", "avg": 2343.219436988764, "p99": 3833.3894000399996, "std": 1049.8},
		"request_count": {"unit": "requests", "avg": 89.0}, "total_isl": {"unit": "tokens", "avg": 48950.0},
		"total_osl": {"unit": "tokens", "avg": 21624.0}, "benchmark_duration": {"unit": "sec", "avg": 9.317788951},
		"request_throughput": {"unit": "requests/sec", "avg": 9.551622221540914},
		"output_token_throughput": {"unit": "tokens/sec", "avg": 2320.7222350404572, "p50": null}},
		"was_cancelled": false, "error_summary": [{"error_details": {"code": 499}, "count": 11}]}`,
		expectation{format: "aiperf", primary: "output_throughput",
			values: map[string]float64{"output_throughput": 2320.7222350404572, "ttft_p99": 3833.3894000399996,
				"ttft_mean": 2343.219436988764, "duration": 9317.788951},
			work: Work{count(89), count(48950), count(21624), count(11)}}},
	// an error summary beside a null count (nvda-ci/aiperf @8e6a033d162b): 81 + 3
	{`{"request_throughput": {"unit": "requests/sec", "avg": 13.16084556379392},
		"time_to_first_token": {"unit": "ms", "avg": 1588.797775365}, "request_count": {"unit": "requests", "avg": 200.0},
		"total_isl": {"unit": "tokens", "avg": 110000.0}, "total_osl": {"unit": "tokens", "avg": 19370.0}, "goodput": null,
		"error_summary": [{"error_details": {"code": 499}, "count": 81}, {"error_details": {"code": 500}, "count": 3}],
		"error_request_count": null}`, expectation{format: "aiperf", primary: "request_throughput",
		values: map[string]float64{"request_throughput": 13.16084556379392, "ttft_mean": 1588.797775365},
		work:   Work{count(200), count(110000), count(19370), count(84)}}},
	// SGLang's bench_one_batch_server, after the block of its warm-up
	{"======== Warmup Begin ========\n" + oneBatch("256", "1477.75") + "======== Warmup End   ========\n\n" +
		oneBatch("16384", "1340.45"), expectation{format: oneBatchServerFormat, primary: "output_throughput",
		values: map[string]float64{"output_throughput": 1340.45, "prefill_throughput": 50249.39, "ttft_max": 330,
			"batch_latency_mean": 500},
		work: Work{Requests: count(16), InputTokens: count(16384), OutputTokens: count(16384)}}},
	// its bench_one_batch
	{`{"run_name": "test_run", "batch_size": 8, "input_len": 1024, "output_len": 1024, "prefill_latency": 7.16,
		"prefill_throughput": 1143.7, "median_decode_latency": 0.0231, "median_decode_throughput": 346.3,
		"total_latency": 30.8, "overall_throughput": 531.7}`,
		expectation{format: "sglang-one-batch/json", primary: "total_throughput",
			values: map[string]float64{"total_throughput": 531.7, "decode_latency_p50": 23.1, "prefill_latency_mean": 7160},
			work:   Work{Requests: count(8), InputTokens: count(8192), OutputTokens: count(8192)}}},
	{"Benchmark ...\nPrefill. latency: 0.50 s, throughput: 2048.00 token/s\n" +
		"Decode.  median latency: 0.01000 s, median throughput: 800.00 token/s\n" +
		"Total. latency:  1.00 s, throughput: 2000.00 token/s\n",
		expectation{format: "sglang-one-batch/stdout", primary: "total_throughput",
			values: map[string]float64{"total_throughput": 2000, "decode_latency_p50": 10, "decode_throughput": 800,
				"prefill_throughput": 2048, "batch_latency_mean": 1000}}},
	// TensorRT-LLM's bench_moe
	{`{"benchmark": "bench_moe", "environment": {"world_size": 4}, "model": {"name": "deepseek_v3", "top_k": 8},
		"results": [{"workload": {"num_tokens": 256}, "actual_config": {"backend": "TRTLLM"}, "status": "success",
		"latency_ms": {"score": 1.24, "raw_score": 1.2533}, "routing_control": {"actual": {"enable_perfect_router": false,
		"observed_dispatch_matrix_summary": {"col_sums": [1536, 171, 171, 170]}}}}], "rankings": []}`,
		expectation{format: "trtllm-bench-moe/json", primary: "moe_latency", ranks: 4,
			values: map[string]float64{"moe_latency": 1.24}}},
	// trtllm-bench's energy block since pull request 11397, on a GB10: 11.83 W over 4.7435 s are 56.1 J
	{`{"engine": {"model": "m", "backend": "Pytorch"}, "world_info": {"tp_size": 1},
		"request_info": {"num_requests": 1, "avg_input_length": 64.0, "avg_output_length": 16.0},
		"performance": {"total_latency_ms": 4743.5, "request_throughput_req_s": 0.21,
		"system_output_throughput_tok_s": 3.37, "system_total_throughput_tok_s": 16.86},
		"energy": {"total_energy_j": 56.1, "output_tps_per_w": 0.285, "average_gpu_power": 11.83}}`,
		expectation{format: "trtllm-bench/report-json", primary: "output_throughput",
			values: map[string]float64{"energy": 56.1, "gpu_power": 11.83, "output_per_watt": 0.285, "duration": 4743.5},
			work:   Work{Requests: count(1), InputTokens: count(64), OutputTokens: count(16)}}},
	// trtllm-serve's client where the server measures energy: 1000 tokens in 4 s at 500 W
	{`============ Serving Benchmark Result ============
Successful requests:                     10
Benchmark duration (s):                  4.00
Request throughput (req/s):              2.50
Output token throughput (tok/s):         250.00
---------------- Energy Metrics -----------------
Total Energy (J):                        2000.0000
Output Tokens per Second per Watt (tps/W): 0.5000
Total GPU Power (W):                     500.0000
`, served("serving/stdout")},
	{`{"completed": 10, "duration": 4.0, "request_throughput": 2.5, "output_throughput": 250.0,
		"energy": {"total_energy_j": 2000.0, "output_tps_per_w": 0.5, "total_gpu_power_w": 500.0}}`,
		served("serving/json")},
	// the built-in workload: four steps of 4, 1, 2 and 3 ms
	{`{"perfect_router": false, "ranks": 2, "tokens_per_rank": 3, "tokens_per_second": 12.5, "iteration_ms": [4, 1, 2, 3],
		"expert_max_over_mean": [2, 3], "rank_max_over_mean": [1.5, NaN]}`,
		expectation{format: workloadFormat, primary: "token_throughput", ranks: 2,
			values: map[string]float64{"token_throughput": 12.5, "step_time_mean": 2.5, "step_time_p50": 2.5,
				"step_time_min": 1}}},
	// trtllm-serve's /metrics: rows on one line
	{`[{"iter": 1, "iterLatencyMS": 2.5, "hostStepTimeMS": 2}, {"iter": 2, "iterLatencyMS": 3.5, "hostStepTimeMS": 3},` +
		`{"iter": 3, "iterLatencyMS": 4, "hostStepTimeMS": 4}]` + "\nspeed: 4\n", expectation{format: iterationFormat, steps: 3}},
	// --log_iteration_data has no times: which iterations are worth recording
	{`{"Iteration Counter": 7, "Active Request Count": 4, "Context Requests": 0, "Scheduled Requests": 4,
		"Total Context Tokens": 0, "Generation Requests": 4, "Timestamp": "11-20-2026 10:00:00"}`,
		expectation{format: iterationFormat, steps: 1, warnings: []string{"worth recording", "7 to 16 (full decode)"}}},
}

func offline(format string) expectation {
	return expectation{format: format, primary: "output_throughput",
		values: map[string]float64{"output_throughput": 4430.38, "total_throughput": 12578.81, "input_throughput": 8148.43,
			"request_throughput": 34.92, "duration": 28640},
		work: Work{Requests: count(1000), InputTokens: count(233369), OutputTokens: count(126886)}}
}

func served(format string) expectation {
	return expectation{format: format, primary: "output_throughput", work: Work{Requests: count(10)},
		values: map[string]float64{"energy": 2000, "gpu_power": 500, "output_per_watt": 0.5, "output_throughput": 250}}
}

func oneBatch(out, speed string) string {
	return "#Input tokens: 16384\n#Output tokens: " + out + "\nbatch size: 16\ninput_len: 1024\noutput_len: 16\n" +
		"latency: 0.50 s\ninput throughput: 50249.39 tok/s\noutput throughput: " + speed + " tok/s\nlast_ttft: 0.33 s\n" +
		"last generation throughput: 1337.26 tok/s\n"
}

// JSON is read by its grammar, so it does not matter where its lines break.
func TestSamples(t *testing.T) {
	for _, s := range samples {
		r, err := Parse("output", strings.NewReader(s.text), nil)
		if err != nil {
			t.Errorf("%s: %v", s.want.format, err)
			continue
		}
		checkResult(t, r, s.want)
	}
}

// One number of unlike things is refused.
func TestRefusesSeveral(t *testing.T) {
	moe := `{"benchmark": "bench_moe", "results": [{}, {}]}`
	for text, want := range map[string]string{
		moe: "--metric",
		"[11/20/2026-10:00:00] [TRT-LLM] [I] loading weights\n": "print_iter_log",
		"server_args=ServerArgs(model_path='m')\n":              "--decode-log-interval",
	} {
		if _, err := Parse("r.json", strings.NewReader(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", text, err, want)
		}
	}
}

// Clocks of different kinds do not compare.
func TestWorkloadClocks(t *testing.T) {
	read := func(clock string) Metric {
		r, err := Parse("output", strings.NewReader(`{"perfect_router": true, "ranks": 2, "tokens_per_rank": 3,
			"tokens_per_second": 12.5, "clock": "`+clock+`"}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.Metrics[0]
	}
	if wall, cpu := read("wall"), read("cpu"); wall.Comparable(cpu) == nil || wall.Comparable(wall) != nil {
		t.Errorf("%+v and %+v", wall, cpu)
	}
}
