package metrics

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

const (
	vllmRule             = "vllm bench latency, linear"
	vllmThroughputFormat = "vllm-throughput"
	vllmLatencyFormat    = "vllm-latency"
)

// vllmThroughputText is the line of "vllm bench throughput". Releases that
// print two numbers mean requests and prompt-and-generated tokens.
var vllmThroughputText = textFormat{
	name:  vllmThroughputFormat + "/stdout",
	line:  readVLLMThroughputLine,
	needs: [][]string{{"request_throughput"}, {"total_throughput"}},
}

var vllmThroughput = regexp.MustCompile(`^Throughput: ([\d.eE+-]+) requests/s, ([\d.eE+-]+) (?:total )?tokens/s(?:, ([\d.eE+-]+) output tokens/s)?$`)

func readVLLMThroughputLine(rec record, rep *report) {
	if !strings.HasPrefix(rec.text, "T") { // as all its lines do
		return
	}
	if m := vllmThroughput.FindStringSubmatch(rec.text); m != nil {
		if m[3] != "" {
			takeText(rec, entry{metric: "output_throughput"}, "", m[3], rep)
		}
		takeText(rec, entry{metric: "total_throughput"}, "", m[2], rep)
		takeText(rec, entry{metric: "request_throughput"}, "", m[1], rep)
		rep.found = true
		return
	}
	switch rec.label {
	case "Total num prompt tokens":
		rep.count(rec.line, "input tokens", &rep.work.InputTokens, rec.value)
	case "Total num output tokens":
		rep.count(rec.line, "output tokens", &rep.work.OutputTokens, rec.value)
	}
}

// takeText is entry.take for a number that is still text.
func takeText(rec record, e entry, rule, text string, rep *report) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		rep.fail(rec.line, input.Error{Expected: "a number for " + e.metric, Found: strconv.Quote(text)})
		return
	}
	e.take(rec, rule, v, rep)
}

// isVLLMThroughput recognizes the JSON of "vllm bench throughput". Its
// tokens_per_second counts prompt and generated tokens; many releases print the
// generated ones alone only on stdout.
func isVLLMThroughput(o *object) bool {
	return o.has("elapsed_time", "num_requests", "total_num_tokens", "requests_per_second", "tokens_per_second")
}

func readVLLMThroughput(f fields) {
	f.needMetric("tokens_per_second", "total_throughput", 1)
	f.needMetric("requests_per_second", "request_throughput", 1)
	f.needMetric("elapsed_time", "duration", 1e3)
	f.work("num_requests", "requests", &f.rep.work.Requests)
	f.work("total_input_tokens", "input tokens", &f.rep.work.InputTokens)
	f.work("total_output_tokens", "output tokens", &f.rep.work.OutputTokens)
	if f.metric("output_tokens_per_second", "output_throughput", 1); len(f.rep.metrics) > 3 {
		return
	}
	f.rep.warn("total_throughput (tokens_per_second) counts prompt tokens too; pass the stdout of vllm bench throughput for output_throughput")
}

// vllmLatencyText is what "vllm bench latency" prints.
var vllmLatencyText = textFormat{
	name:  vllmLatencyFormat + "/stdout",
	line:  readVLLMLatencyLine,
	needs: [][]string{{"batch_latency_mean"}},
}

var vllmLatency = regexp.MustCompile(`^(?:(Avg)|(\d{1,2})% percentile) latency: ([\d.eE+-]+) seconds$`)

func readVLLMLatencyLine(rec record, rep *report) {
	if !strings.HasSuffix(rec.text, " seconds") {
		return
	}
	m := vllmLatency.FindStringSubmatch(rec.text)
	if m == nil {
		return
	}
	name := "batch_latency_mean"
	if m[1] == "" {
		name = "batch_latency_p" + m[2]
	}
	rep.found = true
	takeText(rec, entry{metric: name, factor: 1e3}, vllmRule, m[3], rep)
}

// isVLLMLatency recognizes the JSON of "vllm bench latency", in seconds.
func isVLLMLatency(o *object) bool { return o.has("avg_latency", "latencies", "percentiles") }

func readVLLMLatency(f fields) {
	f.needMetric("avg_latency", "batch_latency_mean", 1e3)
	v, _ := f.value("percentiles")
	if p, ok := v.(*object); ok {
		for _, key := range p.keys {
			if percentile.MatchString("p" + strings.TrimSpace(key)) {
				f.metric("percentiles/"+key, "batch_latency_p"+strings.TrimSpace(key), 1e3)
			}
		}
	}
	if runs, ok := f.list("latencies"); ok {
		for i, s := range runs {
			f.rep.step(Step{Iter: int64(i), Rank: router.None, Requests: router.None, ContextTokens: router.None, GeneratedTokens: router.None, TimeMS: 1e3 * s, Clock: elapsed})
		}
	}
}
