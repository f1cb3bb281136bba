package metrics

import (
	"maps"
	"math"
	"strings"
	"testing"
)

// expectation is what a fixture of testdata/outputs says, read off by hand.
type expectation struct {
	format   string
	primary  string
	values   map[string]float64
	work     Work
	ranks    int
	steps    int
	warnings []string
}

func count(n int64) Count { return Exactly(n) }

var fixtures = map[string]expectation{
	"trtllm-bench-a.txt": {format: "trtllm-bench/stdout-a", primary: "output_throughput",
		values: map[string]float64{"output_throughput": 640, "request_throughput": 10, "duration": 4000,
			"request_latency_mean": 3000, "ttft_mean": 90, "tpot_mean": 46.1905},
		work: Work{Requests: count(40), InputTokens: count(5120), OutputTokens: count(2560)}},
	"trtllm-bench-b.txt": {format: "trtllm-bench/stdout-b", primary: "output_throughput", ranks: 4,
		values: map[string]float64{"output_throughput": 640, "total_throughput": 3200, "user_throughput": 21,
			"gpu_throughput": 160,
			"user_speed":     21.4466, "tpot_p50": 46.6, "tpot_p99": 48, "tpot_min": 46, "tpot_mean": 46.6275,
			"request_latency_p95": 12400, "request_latency_max": 12500},
		work: Work{Requests: count(32), InputTokens: count(32768), OutputTokens: count(8192)}},
	"trtllm-bench-c.txt": {format: "trtllm-bench/stdout-c", primary: "output_throughput", ranks: 8,
		values: map[string]float64{"output_throughput": 2560, "total_throughput": 5120, "user_throughput": 324,
			"gpu_throughput": 320,
			"user_speed":     330.11, "user_speed_p50": 333, "ttft_p50": 60, "ttft_max": 80, "tpot_p90": 3.2,
			"request_latency_mean": 3160, "duration": 4000},
		work: Work{Requests: count(10), InputTokens: count(10240), OutputTokens: count(10240)}},
	"trtllm-report.json": {format: "trtllm-bench/report-json", primary: "output_throughput", ranks: 8,
		values: map[string]float64{"output_throughput": 2560, "total_throughput": 5120, "user_throughput": 324,
			"gpu_throughput": 320,
			"user_speed":     330.11, "user_speed_p50": 333, "ttft_p50": 60, "ttft_max": 80, "tpot_p90": 3.2,
			"request_latency_mean": 3160, "duration": 4000},
		work: Work{Requests: count(10), InputTokens: count(10240), OutputTokens: count(10240)}},
	// 34 whole rows and a cut one. Rows 2 to 31 are decode steps of the full
	// batch, 4 requests: 30 of them, of which a tenth is warm-up. The 27 left
	// are rows 5 to 31: 14 odd ones of 11.25 ms and 13 even ones of 11 ms.
	"iteration-log.txt": {format: "iteration-log", primary: "step_time_mean", steps: 34,
		values:   map[string]float64{"step_time_mean": (14*11.25 + 13*11) / 27, "step_time_p50": 11.25},
		warnings: []string{"27 of 34", "line 35: want a whole JSON object, have one that ends before"}},
	"print-iter-log-1.txt": {format: "iteration-log", primary: "step_time_mean", steps: 6,
		values: map[string]float64{"step_time_mean": 12.5}, warnings: []string{"5 of 6"}},
	"print-iter-log-2.txt": {format: "iteration-log", primary: "step_time_mean", steps: 5,
		values: map[string]float64{"step_time_mean": 12.5}},
	// Two ranks, rows 102 to 107. The time of row i stands in row i+1: 11 … 15
	// on rank 0 and 12 … 16 on rank 1, which is slower in each; the last row of each has none.
	"print-iter-log-3.txt": {format: "iteration-log", primary: "step_time_mean", steps: 12,
		values:   map[string]float64{"step_time_mean": 14, "step_time_p50": 14},
		warnings: []string{"10 of 12", "0: 13.0 ms, 1: 14.0 ms"}},
	// Row 106 is missing, so nobody knows the device time of row 105.
	"print-iter-log-4.txt": {format: "iteration-log", primary: "step_time_mean", steps: 5,
		values: map[string]float64{"step_time_mean": 10.8}, warnings: []string{"lacks 1 iteration",
			"3 of 5 iteration rows"}},
	"serving-trtllm.txt": {format: "serving/stdout", primary: "output_throughput",
		values: map[string]float64{"output_throughput": 256, "total_throughput": 2304, "user_throughput": 80,
			"duration":  4000,
			"ttft_mean": 50, "ttft_p50": 49, "ttft_p99": 61.2, "itl_p99": 30.1, "request_latency_p99": 1700},
		work: Work{Requests: count(8), InputTokens: count(8192), OutputTokens: count(1024), Errors: count(0)}},
	"serving-trtllm.json": {format: "serving/json", primary: "output_throughput",
		values: map[string]float64{"output_throughput": 224, "request_goodput": 1.5, "tpot_p99": 13.5,
			"user_throughput": 80, "duration": 4000},
		work: Work{Requests: count(7), InputTokens: count(7168), OutputTokens: count(896), Errors: count(1)}},
	"serving-vllm.jsonl": {format: "serving/json", primary: "output_throughput",
		values: map[string]float64{"output_throughput": 256, "total_throughput": 2304, "ttft_p50": 49,
			"itl_mean": 12.1},
		work: Work{Requests: count(8), InputTokens: count(8192), OutputTokens: count(1024), Errors: count(0)}},
	"serving-sglang.jsonl": {format: "sglang-serving/json", primary: "output_throughput",
		values: map[string]float64{"output_throughput": 256, "input_throughput": 2048, "request_latency_p99": 1700,
			"itl_p95": 20, "itl_p99": math.NaN()},
		work: Work{Requests: count(8), InputTokens: count(8192), OutputTokens: count(1024)}},
	"serving-sglang.txt": {format: "sglang-serving/stdout", primary: "output_throughput",
		values: map[string]float64{"output_throughput": 256, "input_throughput": 2048, "request_latency_p50": 1580,
			"itl_p95": 20, "itl_max": 44},
		work: Work{Requests: count(8), InputTokens: count(8192), OutputTokens: count(1024)}},
	"vllm-throughput.txt": {format: "vllm-throughput/stdout", primary: "output_throughput",
		values: map[string]float64{"output_throughput": 2560, "total_throughput": 5120, "request_throughput": 2.5},
		work:   Work{InputTokens: count(10240), OutputTokens: count(10240)}},
	"vllm-throughput.json": {format: "vllm-throughput/json", primary: "total_throughput",
		values: map[string]float64{"total_throughput": 5120, "request_throughput": 2.5, "duration": 4000},
		work:   Work{Requests: count(10)}, warnings: []string{"counts prompt tokens too"}},
	"vllm-latency.txt": {format: "vllm-latency/stdout", primary: "batch_latency_mean",
		values: map[string]float64{"batch_latency_mean": 402, "batch_latency_p10": 395, "batch_latency_p99": 420}},
	"vllm-latency.json": {format: "vllm-latency/json", primary: "batch_latency_mean",
		values: map[string]float64{"batch_latency_mean": 402, "batch_latency_p50": 401}},
	"aiperf.json": {format: "aiperf", primary: "output_throughput",
		values: map[string]float64{"output_throughput": 2560, "request_throughput": 2.5, "ttft_p99": 61.2,
			"tpot_p50": 12, "itl_p99": 30.1, "itl_mean": 12.1,
			"user_speed_mean": 82.6, "duration": 25600, "request_latency_min": 1400},
		work: Work{Requests: count(64), InputTokens: count(65536), OutputTokens: count(8192), Errors: count(0)}},
	"genai-perf.json": {format: "aiperf", primary: "output_throughput",
		values: map[string]float64{"output_throughput": 2560, "ttft_p50": 49, "tpot_mean": 12.1},
		work:   Work{Requests: count(64), InputTokens: count(65536), OutputTokens: count(8192)}},
}

func TestEveryFixtureIsRead(t *testing.T) {
	if n := len(fixtureFiles(t)); n != len(fixtures) {
		t.Errorf("%d files, and expectations of %d", n, len(fixtures))
	}
	for name, want := range fixtures {
		t.Run(name, func(t *testing.T) {
			got, err := Parse("output", open(t, "outputs/"+name), nil)
			if err != nil {
				t.Fatal(err)
			}
			checkResult(t, got, want)
		})
	}
}

func checkResult(t *testing.T, got Result, want expectation) {
	t.Helper()
	if got.Format != want.format || got.Primary != want.primary {
		t.Errorf("format %q with primary %q, want %q with %q", got.Format, got.Primary, want.format, want.primary)
	}
	for name, v := range want.values {
		m, ok := got.Metric(name)
		if !ok || math.IsNaN(float64(m.Value)) != math.IsNaN(v) || math.Abs(float64(m.Value)-v) > 1e-9*math.Abs(v) {
			t.Errorf("%s = %v (there: %v), want %v", name, m.Value, ok, v)
		}
	}
	if got.Work != want.work {
		t.Errorf("work %+v, want %+v", got.Work, want.work)
	}
	if got.Proof.Ranks != want.ranks || len(got.Steps) != want.steps {
		t.Errorf("%d ranks and %d steps, want %d and %d", got.Proof.Ranks, len(got.Steps), want.ranks, want.steps)
	}
	all := strings.Join(got.Warnings, "\n")
	for _, w := range want.warnings {
		if !strings.Contains(all, w) {
			t.Errorf("warnings %q do not say %q", all, w)
		}
	}
	for _, m := range got.Metrics {
		if m.Unit == "" || !strings.HasPrefix(m.Definition, m.Name+"/") || strings.HasSuffix(m.Definition, "/") {
			t.Errorf("metric %+v lacks a unit or a definition", m)
		}
		if less := m.Unit == "ms" || m.Unit == "J" || m.Unit == "W"; m.HigherIsBetter == less {
			t.Errorf("metric %q in %q: higher is better: %v", m.Name, m.Unit, m.HigherIsBetter)
		}
	}
}

// What reports say of the model and of how it was run, read off by hand.
func TestSetup(t *testing.T) {
	for file, want := range map[string]map[string]string{
		"trtllm-bench-a.txt": {"model": "meta-llama/Llama-3.1-8B"},
		"trtllm-report.json": {"model": "deepseek-ai/DeepSeek-R1", "backend": "Pytorch",
			"quantization": "FP8_BLOCK_SCALES"},
		"serving-trtllm.json": {"model": "openai/gpt-oss-20b", "backend": "openai", "num_prompts": "8", "request_rate": "inf"},
		"serving-vllm.jsonl":  {"model": "m", "backend": "vllm", "num_prompts": "8", "request_rate": "inf"},
		"aiperf.json":         {"model": "m"},
		"genai-perf.json":     {"model": "m"},
	} {
		r, err := Parse("output", open(t, "outputs/"+file), nil)
		if err != nil || !maps.Equal(r.Setup, want) {
			t.Errorf("%s: have %v, %v, want %v", file, r.Setup, err, want)
		}
	}
}

// Percentiles of two tools are two quantities; percentiles in a tool's two outputs, and throughputs, are one.
func TestPercentilesOfDifferentToolsDoNotCompare(t *testing.T) {
	metric := func(file, name string) Metric {
		r, _ := Parse("output", open(t, "outputs/"+file), nil)
		m, ok := r.Metric(name)
		if !ok {
			t.Fatalf("%s has no %s", file, name)
		}
		return m
	}
	tools := [][2]string{{"trtllm-bench-c.txt", "trtllm-report.json"}, {"serving-trtllm.txt", "serving-vllm.jsonl"},
		{"serving-sglang.txt", "serving-sglang.jsonl"}, {"aiperf.json", "aiperf.json"}, {"genai-perf.json", "genai-perf.json"}}
	for i, a := range tools {
		for j, b := range tools {
			if err := metric(a[0], "ttft_p50").Comparable(metric(b[1], "ttft_p50")); (err == nil) != (i == j) {
				t.Errorf("TTFT medians of %s and %s: %v", a[0], b[1], err)
			}
			if err := metric(a[0], "output_throughput").Comparable(metric(b[1], "output_throughput")); err != nil {
				t.Errorf("throughputs of %s and %s: %v", a[0], b[1], err)
			}
		}
	}
}
