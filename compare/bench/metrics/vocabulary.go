package metrics

import (
	_ "embed" // of the dictionary
	"regexp"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
)

//go:embed dictionary.txt
var dictionary string

// word is a metric of the dictionary.
type word struct{ unit, formula string }

// measure is a unit in another one: "sec" is 1000 "ms".
type measure struct {
	unit string
	by   float64
}

// vocabulary holds the metrics, and families of them; meanings and settings have words by their names, "goodput"
// "request_goodput", "elapsed_time" "duration in s", "conc" "max_concurrency"; and units the units.
var vocabulary, units, meanings, settings = readDictionary(dictionary)

// readDictionary reads the table, and panics at a line without its columns.
func readDictionary(table string) (map[string]word, map[string]measure, map[string]string, map[string]string) {
	words, units := map[string]word{}, map[string]measure{}
	meanings, settings := map[string]string{}, map[string]string{}
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "#") || line == "\n" {
			continue
		}
		columns := strings.Split(line, "|") // fewer than four end the program
		what, unit := strings.TrimSpace(columns[0]), strings.TrimSpace(columns[1])
		setting, isSetting := strings.CutPrefix(what, "setting ")
		of, isUnit := strings.CutPrefix(what, "unit ")
		by, _ := strconv.ParseFloat(unit, 64)
		for _, name := range strings.Fields(columns[3]) {
			bare, seconds := strings.CutSuffix(name, "(s)")
			switch {
			case isSetting:
				settings[name] = setting
			case isUnit:
				units[name] = measure{of, by}
			default:
				meanings[bare] = strings.TrimSuffix(what, "_") + map[bool]string{true: " in s"}[seconds]
			}
		}
		if unit != "" && !isUnit {
			words[what] = word{unit, strings.TrimSpace(columns[2])}
		}
	}
	return words, units, meanings, settings
}

// isFamily reports the name of a family without its end: "ttft".
func isFamily(name string) bool { return vocabulary[name+"_"].unit != "" }

// Numbers that are no metrics: work, by the names that are compared, tokens of a mean request, ranks, tokens that a
// step of speculative decoding accepts, and the generated tokens of the fullest second.
const (
	requests, failures        = gain.WorkRequests, gain.WorkErrors
	inputTokens, outputTokens = gain.WorkInputTokens, gain.WorkOutputTokens
	mean                      = "mean " // of a request: "mean input_tokens" make inputTokens where they are not said
	ranks, accepted, peak     = "ranks", "accepted", "peak"
)

// metric makes a metric of the vocabulary; another number gets no unit. The tool's rule for percentiles, minimum and
// maximum is part of their definition: they compare only with the same tool's.
//
//	"ttft_p99" of trtllm-bench  → "ttft_p99/from sending …; p99 by trtllm-bench, sorted[floor(n·q)]", in ms
func (f *format) metric(name string) gain.Metric {
	w, ok := vocabulary[name]
	if at := strings.LastIndexByte(name, '_') + 1; !ok {
		w = vocabulary[name[:at]]
		w.formula += "; " + name[at:] + map[bool]string{false: " by " + f.Rule}[name[at:] == "mean"]
	}
	return gain.Metric{Name: name, Unit: w.unit, HigherIsBetter: w.unit != "ms", Definition: name + "/" + w.formula}
}

// statistics are the vocabulary's words for the words of tools: "avg" → "mean". Percentiles are "p50", "p99".
var statistics = map[string]string{"avg": "mean", "mean": "mean", "median": "p50",
	"minimum": "min", "min": "min", "maximum": "max", "max": "max"}

// statistic finds these words and percentiles, but not the 1 of "decode_1_latency_s".
var statistic = regexp.MustCompile(
	`p\d+(?:\.\d+)?|^\d+(?:\.\d+)?|\d+(?:\.\d+)?$|avg|mean|median|minimum|min|maximum|max`)
