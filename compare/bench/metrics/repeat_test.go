package metrics

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// repeat reads several reports as one launch.
func repeat(t *testing.T, text string) (Result, bool, error) {
	t.Helper()
	runs, err := ParseRuns("runs", strings.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return Repeated(runs)
}

// The runs of one combination of parameters in the summary.json of a sweep (vllm/benchmarks/sweep/serve.py: the
// report of the serving client, indented by four, with run_number and the parameters) are one launch; points of a
// curve are not, since their mean would be of nothing. The first is from yiliu30/vllm-fork
// scripts/pp_local_test_res.sh, 32 requests; so is the duration of the second, whose rates follow from it.
func TestVLLMSweep(t *testing.T) {
	run := func(concurrency int, duration, perSecond, output, total, ttft float64) string {
		return fmt.Sprintf(`    {
        "backend": "vllm",
        "num_prompts": 32,
        "max_concurrency": %d,
        "duration": %g,
        "completed": 32,
        "total_input_tokens": 65536,
        "total_output_tokens": 65536,
        "request_throughput": %g,
        "output_throughput": %g,
        "total_token_throughput": %g,
        "mean_ttft_ms": %g
    }`, concurrency, duration, perSecond, output, total, ttft)
	}
	first := run(32, 150.87, 0.2121, 434.40, 868.80, 7279.56)
	r, ok, err := repeat(t, "[\n"+first+",\n"+run(32, 198.68, 0.1611, 329.86, 659.72, 9000.44)+"\n]")
	if !ok || err != nil || r.Work[requests] != 32 || r.Work[outputTokens] != 65536 {
		t.Fatalf("%+v, %v", r, err)
	}
	for name, want := range map[string]float64{"output_throughput": 382.13, "total_throughput": 764.26,
		"duration": 174775, "ttft_mean": 8140} {
		if m, ok := r.Metric(name); !ok || math.Abs(m.Value.Float64()-want) > 1e-6*want {
			t.Errorf("%s is %v, want %g", name, m.Value, want)
		}
	}
	if _, _, err := repeat(t, "[\n"+first+",\n"+run(64, 1, 1, 1, 1, 1)+"\n]"); err == nil {
		t.Error("runs of another concurrency are one launch")
	}
	if _, ok, err := repeat(t, workloadLine+"\n"+strings.Replace(workloadLine, "12.5", "13", 1)); ok || err != nil {
		t.Errorf("launches of the workload are one: %v, error %v", ok, err)
	}
}

// Reports that a client printed one behind the other, as a loop in a shell leaves them in a log, are
// runs of one server, at one concurrency.
func TestReportsPrintedInALoop(t *testing.T) {
	block := func(concurrency int, seconds float64) string {
		return fmt.Sprintf("INFO: next\n============ Serving Benchmark Result ============\nMax request concurrency: %d\n"+
			"Successful requests: 10\nBenchmark duration (s): %g\nTotal input tokens: 100\nTotal generated tokens: 100\n"+
			"Request throughput (req/s): %g\nOutput token throughput (tok/s): %g\n==========\n", concurrency, seconds,
			10/seconds, 100/seconds)
	}
	for text, want := range map[string]string{
		block(8, 1) + block(8, 2) + block(8, 4):  "",
		block(8, 1) + block(16, 2) + block(8, 4): "max_concurrency 8 and 16",
	} {
		one, ok, err := repeat(t, text)
		if m, _ := one.Metric("duration"); !ok || (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) || err == nil && math.Abs(m.Value.Float64()-7000/3.0) > 1e-9 {
			t.Errorf("duration %v, %v; want %q", m.Value, err, want)
		}
	}
}
