package metrics

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/input"
)

// sweepRun is a run as vllm/benchmarks/sweep/serve.py of vllm-project/vllm writes it: the
// report of the serving client, indented by four, with run_number and the parameters. The
// values of the first are those of yiliu30/vllm-fork scripts/pp_local_test_res.sh, 32
// requests; of the second, the duration there, and rates that follow from it.
func sweepRunText(number, concurrency int, duration, perSecond, output, total, ttft float64) string {
	return fmt.Sprintf(`    {
        "backend": "vllm",
        "model_id": "m",
        "num_prompts": 32,
        "request_rate": "inf",
        "max_concurrency": %d,
        "duration": %g,
        "completed": 32,
        "total_input_tokens": 65536,
        "total_output_tokens": 65536,
        "request_throughput": %g,
        "output_throughput": %g,
        "total_token_throughput": %g,
        "mean_ttft_ms": %g,
        "run_number": %d
    }`, concurrency, duration, perSecond, output, total, ttft, number)
}

func TestVLLMSweep(t *testing.T) {
	first, second := sweepRunText(0, 32, 150.87, 0.2121, 434.40, 868.80, 7279.56),
		sweepRunText(1, 32, 198.68, 0.1611, 329.86, 659.72, 9000.44)
	r, err := Parse("summary.json", strings.NewReader("[\n"+first+",\n"+second+"\n]"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Format != "vllm-sweep/json" || r.Primary != "output_throughput" || r.Work.Requests != Exactly(64) ||
		r.Work.OutputTokens != Exactly(131072) || r.Work.Errors != Exactly(0) {
		t.Errorf("%+v", r)
	}
	for name, want := range map[string]float64{"output_throughput": 382.13, "total_throughput": 764.26,
		"duration": 174775, "ttft_mean": 8140} {
		if m, ok := r.Metric(name); !ok || math.Abs(m.Value.Float64()-want) > 1e-6*want {
			t.Errorf("%s is %v, want %g", name, m.Value, want)
		}
	}
	if len(r.Warnings) != 1 || r.Warnings[0] != "means over 2 runs of one server, which count as one launch" {
		t.Errorf("warnings %q", r.Warnings)
	}
	one, err := Parse("summary.json", strings.NewReader("[\n"+first+"\n]"), nil)
	if m, _ := one.Metric("output_throughput"); err != nil || m.Value != 434.40 {
		t.Errorf("of one run: %v, %v", m, err)
	}
	// Points of a curve are not repetitions: their mean would be of nothing.
	for name, other := range map[string]string{
		"another concurrency": sweepRunText(1, 64, 1, 1, 1, 1, 1),
		"the same run again":  sweepRunText(0, 32, 1, 1, 1, 1, 1),
	} {
		_, err := Parse("all.json", strings.NewReader("[\n"+first+",\n"+other+"\n]"), nil)
		if e := (*input.Error)(nil); !errors.As(err, &e) || e.Expected != "the runs of one combination of parameters" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The energy block that trtllm-bench writes since pull request 11397 of
// NVIDIA/TensorRT-LLM: the keys and the values of a report of one request, 16 tokens, on a
// GB10 as a public parser of these reports keeps it. 3.37/11.83 is 0.285, and
// 11.83 W over 4.7435 s are 56.1 J.
func TestEnergyBlock(t *testing.T) {
	const report = `{"engine": {"model": "m", "backend": "Pytorch"}, "world_info": {"tp_size": 1},
		"request_info": {"num_requests": 1, "avg_input_length": 64.0, "avg_output_length": 16.0},
		"performance": {"total_latency_ms": 4743.5, "request_throughput_req_s": 0.21, "system_output_throughput_tok_s": 3.37, "system_total_throughput_tok_s": 16.86},
		"energy": {"total_energy_j": 56.1, "output_tps_per_w": 0.285, "average_gpu_power": 11.83}}`
	r, err := Parse("report.json", strings.NewReader(strings.Join(strings.Fields(report), " ")), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Metric{
		"energy": {gain.Metric{Unit: "J"}, 56.1}, "gpu_power": {gain.Metric{Unit: "W"}, 11.83},
		"output_per_watt": {gain.Metric{Unit: "tok/s/W", HigherIsBetter: true}, 0.285},
	} {
		if m, _ := r.Metric(name); m.Unit != want.Unit || m.Value != want.Value ||
			m.HigherIsBetter != want.HigherIsBetter {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if r.Primary != "output_throughput" {
		t.Errorf("the primary metric is %s", r.Primary)
	}
}

// The labels and keys that trtllm-serve's client writes where the server measures energy
// (NVIDIA/TensorRT-LLM tensorrt_llm/serve/scripts/benchmark_serving.py). 1000 tokens in 4 s
// at 500 W are 2000 J, and 250 tok/s over 500 W.
func TestServingEnergy(t *testing.T) {
	const printed = `============ Serving Benchmark Result ============
Successful requests:                     10
Benchmark duration (s):                  4.00
Request throughput (req/s):              2.50
Output token throughput (tok/s):         250.00
---------------- Energy Metrics -----------------
Total Energy (J):                        2000.0000
Output Tokens per Second per Watt (tps/W): 0.5000
Total GPU Power (W):                     500.0000
==================================================
`
	const kept = `{"completed": 10, "duration": 4.0, "request_throughput": 2.5, "output_throughput": 250.0,
"energy": {"total_energy_j": 2000.0, "output_tps_per_w": 0.5, "total_gpu_power_w": 500.0}}`
	for _, text := range []string{printed, "{\n" + kept[1:]} {
		r, err := Parse("result", strings.NewReader(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]float64{"energy": 2000, "gpu_power": 500, "output_per_watt": 0.5,
			"output_throughput": 250} {
			if m, ok := r.Metric(name); !ok || m.Value.Float64() != want {
				t.Errorf("%s: %s is %+v, want %g", r.Format, name, m, want)
			}
		}
	}
}

// A run without a number is refused, and neither dropped from the means nor a crash.
func TestSweepRunWithoutNumber(t *testing.T) {
	run := sweepRunText(0, 32, 150.87, 0.2121, 434.40, 868.80, 7279.56)
	without := strings.Replace(run, `"run_number": 0`, `"run_number": null`, 1)
	for _, text := range []string{"[\n" + without + "\n]", "[\n" + run + ",\n" + without + "\n]"} {
		if _, err := Parse("summary.json", strings.NewReader(text), nil); err == nil ||
			!strings.Contains(err.Error(), "run_number") {
			t.Errorf("%v", err)
		}
	}
}
