package metrics

import (
	"maps"
	"regexp"
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

// vocabulary holds the metrics with one value per launch.
var vocabulary = map[string]word{
	"output_throughput":  {"tok/s", true, "generated tokens over wall time"},
	"total_throughput":   {"tok/s", true, "prompt and generated tokens over wall time"},
	"input_throughput":   {"tok/s", true, "prompt tokens over wall time"},
	"token_throughput":   {"tok/s", true, "ranks·tokens·steps over timed seconds"},
	"request_throughput": {"req/s", true, "requests over wall time"},
	"request_goodput":    {"req/s", true, "requests within their service level over wall time"},
	"user_throughput":    {"tok/s", true, "generated tokens over request latency, mean over requests"},
	"user_speed": {"tok/s", true,
		"generated tokens after the first over the time after the first, mean over requests"},
	"gpu_throughput":     {"tok/s", true, "generated tokens over wall time over GPUs"},
	"prefill_throughput": {"tok/s", true, "prompt tokens over prefill time"},
	"decode_throughput":  {"tok/s", true, "generated tokens over decode time"},
	"moe_latency":        {"ms", false, "one MoE layer on the slowest rank"},
	"duration":           {"ms", false, "wall time"},
}

// families are the metrics that come as a mean, a median, percentiles and so on
// over requests or steps: "ttft" makes "ttft_mean", "ttft_p99", …
var families = map[string]word{
	"request_latency": {"ms", false, "from sending a request to its last token"},
	"ttft":            {"ms", false, "from sending a request to its first token"},
	"tpot":            {"ms", false, "time after the first token over the tokens after it, per request"},
	"itl":             {"ms", false, "every gap between two arrivals, of all requests pooled"},
	"batch_latency":   {"ms", false, "one whole batch"},
	"prefill_latency": {"ms", false, "prefill of one batch"},
	"decode_latency":  {"ms", false, "one decode step"},
	"step_time":       {"ms", false, "one step"},
	"user_speed":      {"tok/s", true, "generated tokens after the first over the time after the first, per request"},
}

// Numbers that are no metrics: work, by the names that are compared, tokens of a mean request, and what a launch says
// of its routing.
const (
	requests, failures            = gain.WorkRequests, gain.WorkErrors
	inputTokens, outputTokens     = gain.WorkInputTokens, gain.WorkOutputTokens
	meanInput, meanOutput         = "mean_input", "mean_output"
	ranks, expertFloor, rankFloor = "ranks", "expert_floor", "rank_floor"
)

// Names are the metrics of the vocabulary; a family stands by its mean, such as ttft_mean.
func Names() []string {
	names := slices.Collect(maps.Keys(vocabulary))
	for family := range families {
		names = append(names, family+"_mean")
	}
	slices.Sort(names)
	return names
}

// metric makes a metric of the vocabulary; of another number the unit is empty. The rule, how the tool
// takes percentiles, minimum and maximum, is part of their definition: they compare only with the same
// tool's. So is a definition of the format's own, for a number that shares the word and not the formula.
func (f *format) metric(name string) gain.Metric {
	w, ok := vocabulary[name]
	if at := strings.LastIndexByte(name, '_'); !ok && at > 0 {
		if w = families[name[:at]]; name[at:] == "_mean" {
			w.formula += "; mean"
		} else {
			w.formula += "; " + name[at+1:] + " by " + f.rule
		}
	}
	if own := f.own[name]; own != "" {
		w.formula = own
	}
	return gain.Metric{Name: name, Unit: w.unit, HigherIsBetter: w.higher, Definition: name + "/" + w.formula}
}

var (
	statistics = map[string]string{"avg": "mean", "average": "mean", "mean": "mean", "median": "p50",
		"minimum": "min", "min": "min", "maximum": "max", "max": "max"}
	percentile = regexp.MustCompile(`^p?(\d{1,2}(?:\.\d+)?)$`)
)

// statistic is the vocabulary's word for a tool's: "average" → "mean", "P50" and "median" → "p50". Others
// are not used: "".
func statistic(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if m := percentile.FindStringSubmatch(s); m != nil {
		return "p" + m[1]
	}
	return statistics[s]
}

// factor turns a number into a unit of the vocabulary.
type factor struct {
	unit string
	by   float64
}

// units are the units as tools write them, in lower case.
var units = map[string]factor{
	"ns": {"ms", 1e-6}, "us": {"ms", 1e-3}, "µs": {"ms", 1e-3}, "ms": {"ms", 1}, "milliseconds": {"ms", 1},
	"s": {"ms", 1e3}, "sec": {"ms", 1e3}, "seconds": {"ms", 1e3}, "nanoseconds": {"ms", 1e-6}, "microseconds": {"ms", 1e-3},
	"tok/s": {"tok/s", 1}, "token/s": {"tok/s", 1}, "tokens/s": {"tok/s", 1}, "tokens/sec": {"tok/s", 1},
	"tokens/second": {"tok/s", 1}, "tokens/sec/user": {"tok/s", 1}, "tokens/second/user": {"tok/s", 1},
	"tokens/sec/gpu": {"tok/s", 1}, "tps/user": {"tok/s", 1}, "tps/gpu": {"tok/s", 1},
	"req/s": {"req/s", 1}, "req/sec": {"req/s", 1}, "requests/s": {"req/s", 1}, "requests/sec": {"req/s", 1},
	"requests/second": {"req/s", 1}, "per_sec": {"req/s", 1},
}
