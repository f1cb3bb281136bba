package metrics

import (
	"fmt"
	"regexp"
	"strings"
)

const mlperfRule = "mlperf loadgen"

// mlperfText is mlperf_log_summary.txt of MLPerf's load generator
// (mlcommons/inference, loadgen/results.cc). A result that it calls INVALID is
// refused.
var mlperfText = textFormat{
	name:  "mlperf/summary",
	line:  readMLPerfLine,
	needs: [][]string{{"output_throughput", "request_throughput", "request_latency_p90", "request_latency_mean"}},
}

// mlperfSpread is a label such as "99.90 percentile latency (ns)".
var mlperfSpread = regexp.MustCompile(`^(?:(\d{2}\.\d+) percentile|(Min|Max|Mean)) (first token latency|time to output token|latency) \(ns\)$`)

var mlperfLabels = map[string]entry{
	"Samples per second":           {metric: "request_throughput"},
	"Completed samples per second": {metric: "request_throughput"},
	"Tokens per second":            {metric: "output_throughput"},
	"Completed tokens per second":  {metric: "output_throughput"},
}

var mlperfFamily = map[string]string{"latency": "request_latency", "first token latency": "ttft", "time to output token": "tpot"}

func readMLPerfLine(rec record, t *tally) {
	if strings.HasPrefix(rec.text, ":::MLLOG ") && !t.found {
		t.found = true
		t.fail(fmt.Errorf("%s: line %d: this is MLPerf's detail log, whose result_token_throughput is too small by 10⁹: hand over mlperf_log_summary.txt", t.format, rec.line))
	}
	if verdict, ok := strings.CutPrefix(rec.text, "Result is :"); ok {
		t.found = true
		if verdict = strings.TrimSpace(verdict); verdict != "VALID" {
			t.fail(fmt.Errorf("%s: line %d: MLPerf calls this result %q: mend the run, its numbers do not count", t.format, rec.line, verdict))
		}
		return
	}
	if rec.label == "" || known(mlperfLabels, rec, mlperfRule, t) {
		return
	}
	m := mlperfSpread.FindStringSubmatch(rec.label)
	if m == nil {
		return
	}
	stat, _ := aggregateName(m[2])
	if m[1] != "" {
		stat = "p" + strings.TrimSuffix(strings.TrimRight(m[1], "0"), ".")
	}
	if m[1] == "50.00" {
		stat = "p50"
	}
	entry{metric: mlperfFamily[m[3]] + "_" + stat, factor: 1e-6}.take(rec, mlperfRule, rec.value, t)
}
