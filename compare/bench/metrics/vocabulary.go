package metrics

import (
	"regexp"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
)

// word is a metric of the vocabulary, to which every tool's name for it is translated. The formula defines it where
// the tool does not compute it in a way of its own. Less is better of times, more of all else.
type word struct{ unit, formula string }

// vocabulary holds the metrics. A name that ends in "_" is a family: "ttft_" makes "ttft_mean", "ttft_p99" and so on,
// over requests or steps.
var vocabulary = map[string]word{
	"output_throughput":  {"tok/s", "generated tokens over wall time"},
	"total_throughput":   {"tok/s", "prompt and generated tokens over wall time"},
	"input_throughput":   {"tok/s", "prompt tokens over wall time"},
	"token_throughput":   {"tok/s", "ranks·tokens·steps over timed seconds"},
	"request_throughput": {"req/s", "requests over wall time"},
	"request_goodput":    {"req/s", "requests within their service level over wall time"},
	"user_throughput":    {"tok/s", "generated tokens over request latency, mean over requests"},
	"user_speed_":        {"tok/s", "generated tokens after the first over the time after the first, per request"},
	"prefill_throughput": {"tok/s", "prompt tokens over prefill time"},
	"decode_throughput":  {"tok/s", "generated tokens over decode time"},
	"moe_latency":        {"ms", "one MoE layer on the slowest rank"},
	"duration":           {"ms", "wall time"},
	"request_latency_":   {"ms", "from sending a request to its last token"},
	"ttft_":              {"ms", "from sending a request to its first token"},
	"tpot_":              {"ms", "time after the first token over the tokens after it, per request"},
	"itl_":               {"ms", "every gap between two arrivals, of all requests pooled"},
	"batch_latency_":     {"ms", "one whole batch"},
	"prefill_latency_":   {"ms", "prefill of one batch"},
	"decode_latency_":    {"ms", "one decode step"},
	"step_time_":         {"ms", "one step"},
}

// Numbers that are no metrics: work, by the names that are compared, tokens of a mean request, ranks, and tokens that a
// step of speculative decoding accepts.
const (
	requests, failures        = gain.WorkRequests, gain.WorkErrors
	inputTokens, outputTokens = gain.WorkInputTokens, gain.WorkOutputTokens
	concurrent                = gain.WorkConcurrency
	mean                      = "mean " // of a request: meanInput makes inputTokens where they are not said
	meanInput, meanOutput     = mean + inputTokens, mean + outputTokens
	ranks, accepted           = "ranks", "accepted"
)

// metric makes a metric of the vocabulary; another number gets no unit. The tool's rule for percentiles, minimum and
// maximum is part of their definition: they compare only with the same tool's.
//
//	"ttft_p99" of trtllm-bench  → "ttft_p99/from sending …; p99 by trtllm-bench, sorted[floor(n·q)]", in ms
func (f *format) metric(name string) gain.Metric {
	w, ok := vocabulary[name]
	if at := strings.LastIndexByte(name, '_') + 1; !ok {
		if w = vocabulary[name[:at]]; name[at:] == "mean" {
			w.formula += "; mean"
		} else {
			w.formula += "; " + name[at:] + " by " + f.rule
		}
	}
	return gain.Metric{Name: name, Unit: w.unit, HigherIsBetter: w.unit != "ms", Definition: name + "/" + w.formula}
}

// statistics are the vocabulary's words for the words of tools: "average" → "mean". Percentiles are "p50", "p99".
var statistics = map[string]string{"avg": "mean", "average": "mean", "mean": "mean", "median": "p50",
	"minimum": "min", "min": "min", "maximum": "max", "max": "max"}

// statistic finds these words and percentiles.
var statistic = regexp.MustCompile(`(?i)p?\d+(?:\.\d+)?|average|avg|mean|median|minimum|min|maximum|max`)

// units translates the units of tools, in lower case: "sec" → 1000 ms.
var units = map[string]struct {
	unit string
	by   float64
}{
	"ns": {"ms", 1e-6}, "us": {"ms", 1e-3}, "µs": {"ms", 1e-3}, "ms": {"ms", 1}, "milliseconds": {"ms", 1},
	"s": {"ms", 1e3}, "sec": {"ms", 1e3}, "seconds": {"ms", 1e3},
	"tok/s": {"tok/s", 1}, "token/s": {"tok/s", 1}, "tokens/s": {"tok/s", 1}, "tokens/sec": {"tok/s", 1},
	"tokens/second": {"tok/s", 1}, "tokens/sec/user": {"tok/s", 1}, "tokens/second/user": {"tok/s", 1},
	"tokens/sec/gpu": {"tok/s", 1}, "tps/user": {"tok/s", 1}, "tps/gpu": {"tok/s", 1},
	"req/s": {"req/s", 1}, "req/sec": {"req/s", 1}, "requests/s": {"req/s", 1}, "requests/sec": {"req/s", 1},
	"requests/second": {"req/s", 1}, "per_sec": {"req/s", 1},
}
