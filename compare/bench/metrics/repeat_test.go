package metrics

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

// The runs of one combination of parameters are one launch, in the summary.json of a sweep
// (vllm/benchmarks/sweep/serve.py: the report of the serving client, indented by four, with the parameters) and
// printed one behind the other, as a loop in a shell leaves them in a log. Points of a curve are not, since their mean
// would be of nothing. The first run of the sweep is from yiliu30/vllm-fork scripts/pp_local_test_res.sh, 32 requests;
// so is the duration of the second, whose rates follow from it.
func TestLaunches(t *testing.T) {
	run := func(concurrency int, duration, perSecond, output, ttft float64) string {
		return fmt.Sprintf(`    {
        "backend": "vllm",
        "max_concurrency": %d,
        "duration": %g,
        "completed": 32,
        "total_output_tokens": 65536,
        "request_throughput": %g,
        "output_throughput": %g,
        "mean_ttft_ms": %g
    }`, concurrency, duration, perSecond, output, ttft)
	}
	block := func(concurrency int, seconds float64) string {
		return fmt.Sprintf("INFO: next\n============ Serving Benchmark Result ============\nMax request concurrency: %d\n"+
			"Successful requests: 32\nBenchmark duration (s): %g\nTotal generated tokens: 65536\n"+
			"Request throughput (req/s): %g\nOutput token throughput (tok/s): %g\n==========\n", concurrency, seconds,
			32/seconds, 65536/seconds)
	}
	const batches = `{"batch_size": 8, "input_len": 1024, "output_len": 16, "latency": 0.5, "overall_throughput": 532}`
	first := run(32, 150.87, 0.2121, 434.40, 7279.56)
	for text, want := range map[string]float64{ // the duration; 0 is an error, −1 several launches
		"[\n" + first + ",\n" + run(32, 198.68, 0.1611, 329.86, 9000.44) + "\n]":                                    174775,
		"[\n" + strings.Replace(first, "mean_", "", 1) + "]" + first:                                                150870,
		"[\n" + first + ",\n" + run(64, 150.87, 0.2121, 434.40, 1) + "\n]":                                          0,
		"[\n" + strings.Replace(first, "\"max_concurrency\": 32,", "", 1) + ",\n" + first[:len(first)-10] + "9\n}]": 0,
		block(8, 1) + block(8, 2) + block(8, 4):                                                                     7000 / 3.0,
		block(8, 1) + block(16, 2) + block(8, 4):                                                                    0,
		workloadLine + "\n" + strings.Replace(workloadLine, "second\": 12", "second\": 13", 1):                      -1,
		batches + strings.ReplaceAll(batches, ": 8,", ": 16,"):                                                      0,
		batches + strings.ReplaceAll(batches, "532", "533"):                                                         -1,
	} {
		runs := require.Value(ParseRuns("runs", strings.NewReader(text), nil))
		launches, err := Launches(runs)
		r := append(launches, Result{})[0]
		m, _ := r.Metric("duration")
		_, all := r.Metric("ttft_mean")
		if (len(launches) > 1) != (want < 0) || (err != nil) != (want == 0) || want > 0 && (math.Abs(float64(m.Value)-want) > 1e-9 ||
			r.Work[requests] != 32 || r.Work[outputTokens] != 65536 || all != (want == 174775)) {
			t.Errorf("%.60s: %+v, %v; want %v", text, launches, err, want)
		}
	}
}
