package metrics

import (
	"regexp"
	"strings"
)

// SGLang's benchmarks of one batch: bench_one_batch writes a JSON line a run, bench_one_batch_server
// prints one batch as a warm-up, then each as a block (python/sglang/bench_one_batch_server.py).
const (
	oneBatchFormat       = "sglang-one-batch/json"
	oneBatchServerFormat = "sglang-one-batch-server/stdout"
)

// oneBatchMembers are the JSON of bench_one_batch. overall_throughput counts prompt and generated tokens.
var oneBatchMembers = []member{
	{"overall_throughput", labelRule{metric: "total_throughput"}, true},
	{"total_latency", labelRule{metric: "batch_latency_mean", factor: 1e3}, true},
	{"prefill_latency", labelRule{metric: "prefill_latency_mean", factor: 1e3}, false},
	{"prefill_throughput", labelRule{metric: "prefill_throughput"}, false},
	{"median_decode_latency", labelRule{metric: "decode_latency_p50", factor: 1e3}, false},
	{"median_decode_throughput", labelRule{metric: "decode_throughput"}, false},
	{"batch_size", requests, false},
}

func readOneBatch(f fields) {
	f.record(oneBatchMembers)
	f.rep.inputLength, _ = f.number("input_len")
	f.rep.outputLength, _ = f.number("output_len")
	f.rep.countTokens()
}

// oneBatchServerText are the blocks of bench_one_batch_server. The warm-up's is left out; of several
// batches, which are several measurements, a rule with --metric has to choose.
var oneBatchServerText = textFormat{
	name: oneBatchServerFormat,
	line: oneBatchServerLine,
	labels: map[string]labelRule{
		"#Input tokens":     inputTokens,
		"#Output tokens":    outputTokens,
		"batch size":        requests,
		"latency":           {metric: "batch_latency_mean", factor: 1e3},
		"input throughput":  {metric: "prefill_throughput"},
		"output throughput": {metric: "output_throughput"},
		"last_ttft":         {metric: "ttft_max", factor: 1e3, anchor: true},
	},
	needs: []string{"output_throughput", "batch_latency_mean"},
}

var oneBatchServerNumber = regexp.MustCompile(`^([#\w ]+): ([\d.]+)(?: s| tok/s)?$`)

// oneBatchServerLine returns the labels outside of the warm-up.
func oneBatchServerLine(rec record, rep *report) (label string, v float64) {
	if strings.HasPrefix(rec.text, "=") {
		rep.warmup = strings.Contains(rec.text, " Warmup Begin ") || rep.warmup && !strings.Contains(rec.text, " Warmup End ")
	}
	m := oneBatchServerNumber.FindStringSubmatch(rec.text)
	if m == nil || rep.warmup {
		return "", 0
	}
	label, v = labeled(m[1] + ": " + m[2])
	return label, v
}
