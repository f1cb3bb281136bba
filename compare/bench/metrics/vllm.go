package metrics

import (
	"regexp"
	"strconv"
	"strings"

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
	name:   vllmThroughputFormat + "/stdout",
	labels: map[string]labelRule{"Total num prompt tokens": inputTokens, "Total num output tokens": outputTokens},
	line:   vllmThroughputLine,
	needs:  []string{"request_throughput", "total_throughput"},
}

var vllmThroughput = regexp.MustCompile(
	`^Throughput: ([\d.eE+-]+) requests/s, ([\d.eE+-]+) (?:total )?tokens/s(?:, ([\d.eE+-]+) output tokens/s)?$`)

func vllmThroughputLine(rec record, rep *report) (label string, v float64) {
	if !strings.HasPrefix(rec.text, "Throughput: ") {
		return rec.label, rec.value
	}
	if m := vllmThroughput.FindStringSubmatch(rec.text); m != nil {
		rep.found = true
		for i, name := range []string{3: "output_throughput", 2: "total_throughput", 1: "request_throughput"} {
			if m[i] != "" && i > 0 {
				rep.recordText(rec.line, labelRule{metric: name}, m[i])
			}
		}
	}
	return "", 0
}

// recordText records a number that is still text.
func (rep *report) recordText(line int, e labelRule, text string) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		rep.fail(line, input.Error{Expected: "a number for " + e.metric, Found: strconv.Quote(text)})
		return
	}
	rep.record(e, line, v)
}

// vllmThroughputMembers are the JSON of "vllm bench throughput". Its
// tokens_per_second counts prompt and generated tokens; many releases print the
// generated ones alone only on stdout.
var vllmThroughputMembers = []member{
	{"tokens_per_second", labelRule{metric: "total_throughput"}, true},
	{"requests_per_second", labelRule{metric: "request_throughput"}, true},
	{"elapsed_time", labelRule{metric: "duration", factor: 1e3}, true},
	{"num_requests", requests, false},
	{"total_input_tokens", inputTokens, false},
	{"total_output_tokens", outputTokens, false},
	{"output_tokens_per_second", labelRule{metric: "output_throughput"}, false},
}

func readVLLMThroughput(f fields) {
	f.record(vllmThroughputMembers)
	if _, ok := f.value("output_tokens_per_second"); !ok {
		f.rep.warn("total_throughput (tokens_per_second) counts prompt tokens too; pass the stdout of vllm bench " +
			"throughput for output_throughput")
	}
}

// vllmLatencyText is what "vllm bench latency" prints.
var vllmLatencyText = textFormat{
	name:  vllmLatencyFormat + "/stdout",
	rule:  vllmRule,
	line:  vllmLatencyLine,
	needs: []string{"batch_latency_mean"},
}

var vllmLatency = regexp.MustCompile(`^(?:(Avg)|(\d{1,2})% percentile) latency: ([\d.eE+-]+) seconds$`)

func vllmLatencyLine(rec record, rep *report) (label string, v float64) {
	if !strings.HasSuffix(rec.text, " seconds") {
		return "", 0
	}
	if m := vllmLatency.FindStringSubmatch(rec.text); m != nil {
		rep.found = true
		stat := "mean"
		if m[1] == "" {
			stat = "p" + m[2]
		}
		rep.recordText(rec.line, labelRule{metric: "batch_latency_" + stat, factor: 1e3}, m[3])
	}
	return "", 0
}

// readVLLMLatency reads the JSON of "vllm bench latency", in seconds.
func readVLLMLatency(f fields) {
	f.record([]member{{"avg_latency", labelRule{metric: "batch_latency_mean", factor: 1e3}, true}})
	v, _ := f.value("percentiles")
	if p, ok := v.(*object); ok {
		for _, key := range p.keys {
			if stat := "p" + strings.TrimSpace(key); percentile.MatchString(stat) {
				f.record([]member{{"percentiles/" + key, labelRule{metric: "batch_latency_" + stat, factor: 1e3}, false}})
			}
		}
	}
	if runs, ok := f.list("latencies"); ok {
		f.rep.timed(runs, 1e3, elapsed)
	}
}
