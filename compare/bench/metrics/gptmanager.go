package metrics

import (
	"regexp"
	"strconv"
	"strings"
)

// The C++ benchmark of older TensorRT-LLM (benchmarks/cpp).
const gptManagerRule = "gptManagerBenchmark, sorted[ceil(q·n)-1]"

// gptManagerText are lines "[BENCHMARK] key(unit) value" of gptManagerBenchmark.
// Its first releases count the tokens that were asked for, later ones those that
// were generated; only the later ones print num_error_samples.
var gptManagerText = textFormat{
	name:   "gptManagerBenchmark",
	line:   readGPTManagerLine,
	needs:  [][]string{{"output_throughput"}, {"request_throughput"}, {"duration"}},
	finish: finishGPTManager,
}

var (
	gptManagerLine   = regexp.MustCompile(`^\[BENCHMARK\] (\w+)(?:\(([^)]*)\))? ([-+\w.]+)$`)
	gptManagerSpread = regexp.MustCompile(`^(avg|max|min|p\d\d)_(sequence_latency|time_to_first_token|inter_token_latency|user_tokens_per_second|request_queueing_latency)$`)
)

var gptManagerFamily = map[string]string{
	"sequence_latency": "request_latency", "time_to_first_token": "ttft", "inter_token_latency": "tpot",
	"user_tokens_per_second": "user_speed", "request_queueing_latency": "queue_time",
}

func readGPTManagerLine(rec record, rep *report) {
	if !strings.HasPrefix(rec.text, "[BENCHMARK] ") {
		return
	}
	m := gptManagerLine.FindStringSubmatch(strings.TrimSuffix(strings.TrimSpace(rec.text), ","))
	if m == nil {
		return
	}
	v, err := strconv.ParseFloat(m[3], 64)
	if err != nil {
		return
	}
	switch key := m[1]; key {
	case "num_samples":
		rep.found = true
		rep.count(rec.line, "requests", &rep.work.Requests, v)
	case "num_error_samples":
		rep.count(rec.line, "failed requests", &rep.work.Errors, v)
	case "total_latency":
		entry{metric: "duration"}.take(rec, gptManagerRule, v, rep)
	case "seq_throughput":
		entry{metric: "request_throughput"}.take(rec, gptManagerRule, v, rep)
	case "token_throughput":
		entry{metric: "output_throughput"}.take(rec, gptManagerRule, v, rep)
	default:
		if m := gptManagerSpread.FindStringSubmatch(key); m != nil {
			stat, _ := aggregateName(m[1])
			entry{metric: gptManagerFamily[m[2]] + "_" + stat}.take(rec, gptManagerRule, v, rep)
		}
	}
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
