package metrics

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

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
