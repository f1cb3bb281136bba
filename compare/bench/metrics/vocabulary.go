package metrics

import (
	"cmp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
)

// word is a word of the vocabulary: what every tool's name for it becomes.
type word struct {
	unit    string
	higher  bool
	formula string // the definition where a tool does not need one of its own
}

const speed = "generated tokens after the first over the time after the first"

// vocabulary holds the metrics. Of one that ends in "_" there is a mean, a median, percentiles and so on over requests
// or steps: "ttft_" makes "ttft_mean", "ttft_p99", …
var vocabulary = map[string]word{
	"output_throughput":  {"tok/s", true, "generated tokens over wall time"},
	"total_throughput":   {"tok/s", true, "prompt and generated tokens over wall time"},
	"input_throughput":   {"tok/s", true, "prompt tokens over wall time"},
	"token_throughput":   {"tok/s", true, "ranks·tokens·steps over timed seconds"},
	"request_throughput": {"req/s", true, "requests over wall time"},
	"request_goodput":    {"req/s", true, "requests within their service level over wall time"},
	"user_throughput":    {"tok/s", true, "generated tokens over request latency, mean over requests"},
	"user_speed":         {"tok/s", true, speed + ", mean over requests"},
	"user_speed_":        {"tok/s", true, speed + ", per request"},
	"gpu_throughput":     {"tok/s", true, "generated tokens over wall time over GPUs"},
	"prefill_throughput": {"tok/s", true, "prompt tokens over prefill time"},
	"decode_throughput":  {"tok/s", true, "generated tokens over decode time"},
	"moe_latency":        {"ms", false, "one MoE layer on the slowest rank"},
	"duration":           {"ms", false, "wall time"},
	"request_latency_":   {"ms", false, "from sending a request to its last token"},
	"ttft_":              {"ms", false, "from sending a request to its first token"},
	"tpot_":              {"ms", false, "time after the first token over the tokens after it, per request"},
	"itl_":               {"ms", false, "every gap between two arrivals, of all requests pooled"},
	"batch_latency_":     {"ms", false, "one whole batch"},
	"prefill_latency_":   {"ms", false, "prefill of one batch"},
	"decode_latency_":    {"ms", false, "one decode step"},
	"step_time_":         {"ms", false, "one step"},
}

// Numbers that are no metrics: work, by the names that are compared, tokens of a mean request, ranks, and tokens that a
// step of speculative decoding accepts.
const (
	requests, failures        = gain.WorkRequests, gain.WorkErrors
	inputTokens, outputTokens = gain.WorkInputTokens, gain.WorkOutputTokens
	meanInput, meanOutput     = "mean_input", "mean_output"
	ranks, accepted           = "ranks", "accepted"
)

// Names are the metrics of the vocabulary; a family stands by its mean, such as ttft_mean.
func Names() (names []string) {
	for name := range vocabulary {
		if strings.HasSuffix(name, "_") {
			name += "mean"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// metric makes a metric of the vocabulary; of another number the unit is empty. The rule, how the tool
// takes percentiles, minimum and maximum, is part of their definition: they compare only with the same
// tool's. So is a definition of the format's own, for a number that shares the word and not the formula.
func (f *format) metric(name string) gain.Metric {
	w, ok := vocabulary[name]
	if at := strings.LastIndexByte(name, '_') + 1; !ok {
		if w = vocabulary[name[:at]]; name[at:] == "mean" {
			w.formula += "; mean"
		} else {
			w.formula += "; " + name[at:] + " by " + f.rule
		}
	}
	formula := cmp.Or(f.own[name], w.formula)
	return gain.Metric{Name: name, Unit: w.unit, HigherIsBetter: w.higher, Definition: name + "/" + formula}
}

var statistics = map[string]string{"avg": "mean", "average": "mean", "mean": "mean", "median": "p50",
	"minimum": "min", "min": "min", "maximum": "max", "max": "max"}

// statistic is the vocabulary's word for a tool's: "average" → "mean", "P50", "50" and "median" → "p50".
func statistic(s string) string {
	s = strings.ToLower(s)
	return cmp.Or(statistics[s], "p"+strings.TrimPrefix(s, "p"))
}

// factor turns a number into a unit of the vocabulary.
type factor struct {
	unit string
	by   float64
}

// units are the units as tools write them, in lower case.
var units = map[string]factor{
	"ns": {"ms", 1e-6}, "us": {"ms", 1e-3}, "µs": {"ms", 1e-3}, "ms": {"ms", 1}, "milliseconds": {"ms", 1},
	"s": {"ms", 1e3}, "sec": {"ms", 1e3}, "seconds": {"ms", 1e3},
	"tok/s": {"tok/s", 1}, "token/s": {"tok/s", 1}, "tokens/s": {"tok/s", 1}, "tokens/sec": {"tok/s", 1},
	"tokens/second": {"tok/s", 1}, "tokens/sec/user": {"tok/s", 1}, "tokens/second/user": {"tok/s", 1},
	"tokens/sec/gpu": {"tok/s", 1}, "tps/user": {"tok/s", 1}, "tps/gpu": {"tok/s", 1},
	"req/s": {"req/s", 1}, "req/sec": {"req/s", 1}, "requests/s": {"req/s", 1}, "requests/sec": {"req/s", 1},
	"requests/second": {"req/s", 1}, "per_sec": {"req/s", 1},
}
