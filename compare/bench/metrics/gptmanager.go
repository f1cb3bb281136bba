package metrics

import (
	"regexp"
	"strconv"
	"strings"
)

// gptManagerText are lines "[BENCHMARK] key(unit) value" of gptManagerBenchmark,
// the C++ benchmark of older TensorRT-LLM (benchmarks/cpp).
// Its first releases count the tokens that were asked for, later ones those that
// were generated; only the later ones print num_error_samples.
var gptManagerText = textFormat{
	name: "gptManagerBenchmark",
	rule: "gptManagerBenchmark, sorted[ceil(q·n)-1]",
	labels: map[string]entry{
		"num_samples":       {metric: requests.metric, count: requests.count, anchor: true},
		"num_error_samples": failures,
		"total_latency":     {metric: "duration"},
		"seq_throughput":    {metric: "request_throughput"},
		"token_throughput":  {metric: "output_throughput"},
	},
	spread: regexp.MustCompile(
		`^(?P<stat>avg|max|min|p\d\d)_(?P<of>sequence_latency|time_to_first_token|inter_token_latency|user_tokens_per_second|request_queueing_latency)$`),
	families: map[string]string{
		"sequence_latency": "request_latency", "time_to_first_token": "ttft", "inter_token_latency": "tpot",
		"user_tokens_per_second": "user_speed", "request_queueing_latency": "queue_time",
	},
	line:   gptManagerLine,
	needs:  []string{"output_throughput", "request_throughput", "duration"},
	finish: finishGPTManager,
}

var gptManagerPair = regexp.MustCompile(`^\[BENCHMARK\] (\w+)(?:\(([^)]*)\))? ([-+\w.]+)$`)

func gptManagerLine(rec record, _ *report) (label string, v float64) {
	if !strings.HasPrefix(rec.text, "[BENCHMARK] ") {
		return "", 0
	}
	m := gptManagerPair.FindStringSubmatch(strings.TrimSuffix(strings.TrimSpace(rec.text), ","))
	if m == nil {
		return "", 0
	}
	v, err := strconv.ParseFloat(m[3], 64)
	if err != nil {
		return "", 0
	}
	return m[1], v
}

func finishGPTManager(rep *report) {
	if rep.work.Errors.Known {
		return
	}
	for i, m := range rep.metrics {
		if m.Name == "output_throughput" {
			rep.metrics[i].Definition = m.Name + "/tokens asked for over wall time"
		}
	}
	rep.warn("output_throughput counts requested tokens, generated or not: this release of gptManagerBenchmark reports no others")
}
