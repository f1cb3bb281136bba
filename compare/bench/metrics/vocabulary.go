package metrics

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// definition is a word of the vocabulary: what every tool's name for it becomes.
type definition struct {
	unit    string
	higher  bool
	formula string // the definition where a tool does not need one of its own
}

// definitions are the metrics with one value per launch.
var definitions = map[string]definition{
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
	"energy":             {"J", false, "energy of all GPUs over the run"},
	"gpu_power":          {"W", false, "energy of all GPUs over wall time"},
	"output_per_watt":    {"tok/s/W", true, "generated tokens over energy of all GPUs"},
}

// families are the metrics that come as a mean, a median, percentiles and so on
// over requests or steps: "ttft" makes "ttft_mean", "ttft_p99", …
var families = map[string]definition{
	"request_latency": {"ms", false, "from sending a request to its last token"},
	"ttft":            {"ms", false, "from sending a request to its first token"},
	"tpot":            {"ms", false, "time after the first token over the tokens after it, per request"},
	"itl":             {"ms", false, "every gap between two arrivals, of all requests pooled"},
	"queue_time":      {"ms", false, "from sending a request to its first scheduling"},
	"batch_latency":   {"ms", false, "one whole batch"},
	"prefill_latency": {"ms", false, "prefill of one batch"},
	"decode_latency":  {"ms", false, "one decode step"},
	"step_time":       {"ms", false, "one step"},
	"user_speed":      {"tok/s", true, "generated tokens after the first over the time after the first, per request"},
}

// Names are the metrics of the vocabulary; a family stands by its mean, such as ttft_mean.
func Names() []string {
	names := slices.Collect(maps.Keys(definitions))
	for family := range families {
		names = append(names, family+"_mean")
	}
	slices.Sort(names)
	return names
}

var aggregate = regexp.MustCompile(`^(.+)_(mean|min|max|p\d{1,2}(?:\.\d+)?)$`)

// metricOf makes a metric of the vocabulary. rule names the tool and how it
// takes percentiles, minimum and maximum; it becomes part of their definition,
// so that they compare only with the same tool's. It is the whole definition
// where own is set: for a number that shares the word and not the formula.
func metricOf(name, rule, own string, v router.Number) Metric {
	q, ok := definitions[name]
	text := q.formula
	if m := aggregate.FindStringSubmatch(name); !ok && m != nil {
		q = families[m[1]]
		text = q.formula + "; mean"
		if m[2] != "mean" {
			text = q.formula + "; " + m[2] + " by " + rule
		}
	}
	if own != "" {
		text = own
	}
	return Metric{gain.Metric{Name: name, Unit: q.unit, HigherIsBetter: q.higher, Definition: name + "/" + text}, v}
}

// aggregateName is the vocabulary's word for a tool's: "average" is "mean",
// "P50" and "median" are "p50", "minimum" is "min". Others are not used.
func aggregateName(s string) (string, bool) {
	switch s = strings.ToLower(strings.TrimSpace(s)); s {
	case "avg", "average", "mean":
		return "mean", true
	case "median":
		return "p50", true
	case "minimum", "min":
		return "min", true
	case "maximum", "max":
		return "max", true
	}
	m := percentile.FindStringSubmatch(s)
	if m == nil {
		return s, false
	}
	return "p" + m[1], true
}

var percentile = regexp.MustCompile(`^p?(\d{1,2}(?:\.\d+)?)$`)
