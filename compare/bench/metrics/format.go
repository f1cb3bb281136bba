package metrics

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// format is one layout of a tool's output: a row of formats.
type format struct {
	name string
	rule string // how the tool takes percentiles, see metricOf
	// is recognizes an object or a row of the format; nil for a printed report, which sees every line.
	is func(*document) bool
	// title begins a printed report: labels before it mean nothing. A report without a title begins with an anchor.
	title string
	// gap are the first and the last line of what is no part of the report, such as a warm-up.
	gap [2]string
	// means says what the number at a path or label is. In a path "{stat}" stands for a mean, a percentile and so
	// on, whose name then ends the metric's.
	means    map[string]meaning
	patterns []string  // paths of means with "{stat}"
	units    bool      // a number at a/avg has its unit at a/unit
	needs    []string  // metrics that a whole report has
	sizes    [2]string // paths of the lengths of prompts and answers, or of their statistics
	// also reads what the table does not say, finish draws conclusions at the end of a report that was found.
	also   func(*report, *document)
	finish func(*report)
}

// meaning is what a number at a path is: a metric times a factor, or a number of things.
type meaning struct {
	to     string // a metric, or one of things
	factor float64
	own    string // a definition of its own, see metricOf
	anchor bool   // only this format has it
	since  string // the oldest trtllm-bench that has the label, "" for the first
}

func metric(name string) meaning  { return meaning{to: name, factor: 1} }
func seconds(name string) meaning { return meaning{to: name, factor: 1e3} }
func anchor(name, since string) meaning {
	return meaning{to: name, factor: 1, anchor: true, since: since}
}
func ownMetric(name, definition string) meaning { return meaning{to: name, factor: 1, own: definition} }

// The numbers that are no metrics; mean input and output are tokens of a request.
var (
	requests, inputTokens, outputTokens = metric("requests"), metric("input tokens"), metric("output tokens")
	failures, meanInput, meanOutput     = metric("failed requests"), metric("mean input"), metric("mean output")
	ranks, expertFloor, rankFloor       = metric("ranks"), metric("expert floor"), metric("rank floor")

	things = []string{requests.to, inputTokens.to, outputTokens.to, failures.to, meanInput.to, meanOutput.to, ranks.to,
		expertFloor.to, rankFloor.to}
)

// meaningOf is the meaning of a path in the format.
//
//	"mean_ttft_ms" where means has "{stat}_ttft_ms": metric("ttft")  → metric("ttft_mean")
func (f *format) meaningOf(path string) (meaning, bool) {
	if m, ok := f.means[path]; ok {
		return m, true
	}
	for _, pattern := range f.patterns {
		before, after, _ := strings.Cut(pattern, "{stat}")
		if len(path) < len(pattern)-len("{stat}") || !strings.HasPrefix(path, before) || !strings.HasSuffix(path, after) {
			continue
		}
		m := f.means[pattern]
		stat, ok := aggregateName(path[len(before) : len(path)-len(after)])
		if m.to += "_" + stat; ok {
			return m, true
		}
	}
	return meaning{}, false
}

// read takes a document into the report.
func (r *report) read(doc *document) {
	if r.is == nil && !r.inside(doc) {
		return
	}
	for _, path := range doc.paths {
		if m, ok := r.meaningOf(path); ok {
			if v, ok := r.number(doc, path); ok {
				r.record(m, doc, path, v)
			}
		}
	}
	if r.sizes[0] != "" {
		r.out.Lengths = Lengths{Input: rootMeanSquare(doc, r.sizes[0]), Output: rootMeanSquare(doc, r.sizes[1])}
	}
	if r.also != nil {
		r.also(r, doc)
	}
	if r.is != nil {
		r.noteSettings(doc)
	}
}

// inside reports whether a line is below the title of the report and in no gap of it.
func (r *report) inside(doc *document) bool {
	switch {
	case r.title != "" && strings.Trim(doc.text, "= ") == r.title:
		r.known = true
		return false
	case r.gap[0] != "" && strings.Contains(doc.text, r.gap[0]):
		r.skips = true
	case r.skips && strings.Contains(doc.text, r.gap[1]):
		r.skips = false
		return false
	}
	return !r.skips && (r.title == "" || r.known)
}

// record puts a number into the report.
func (r *report) record(m meaning, doc *document, path string, v router.Number) {
	r.known = r.known || m.anchor
	r.since = max(r.since, m.since)
	of := metricOf(m.to, r.rule, m.own, v*router.Number(m.factor))
	if r.units && of.Unit != "" {
		at := path[:strings.LastIndexByte(path, '/')+1] + "unit"
		text, _ := doc.values[at].(string)
		factor, ok := unitFactors[of.Unit][strings.ToLower(text)]
		if !ok {
			r.wrong(doc, at, "a known unit of "+of.Unit, doc.values[at])
			return
		}
		of.Value *= router.Number(factor)
	}
	r.put(doc.line, of)
}

// unitFactors turn a unit as exports write it into the vocabulary's.
var unitFactors = map[string]map[string]float64{
	"ms": {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1, "milliseconds": 1, "s": 1e3, "sec": 1e3, "seconds": 1e3,
		"nanoseconds": 1e-6, "microseconds": 1e-3},
	"tok/s": {"tokens/sec": 1, "tokens/sec/user": 1, "tokens/s": 1, "tok/s": 1, "tokens/second": 1,
		"tokens/second/user": 1},
	"req/s": {"requests/sec": 1, "requests/s": 1, "req/s": 1, "requests/second": 1, "per_sec": 1},
}

// setups are the paths by which reports say what they ran.
var setups = map[string][]string{
	"model":  {"model_id", "engine/model", "input_config/endpoint/model_names/0", "input_config/model/0", "model/name"},
	"router": {"router"}, "experts": {"shape/experts"}, "top_k": {"shape/top_k", "model/top_k"}, "layers": {"layers"},
	"hidden": {"hidden"}, "tokens_per_rank": {"tokens_per_rank"}, "quantization": {"engine/quantization"},
	"backend":         {"engine/backend", "experts", "backend", "results/0/actual_config/backend"},
	"max_concurrency": {"max_concurrency"}, "request_rate": {"request_rate"}, "num_prompts": {"num_prompts"},
	"batch_size": {"batch_size"}, "input_len": {"input_len"}, "output_len": {"output_len"},
	"tokens": {"results/0/workload/num_tokens"},
}

// noteSettings keeps what the document says of its model and of how that was run. Every spelling of infinity is
// one: JSON's Infinity of one client is the text "inf" of another.
func (r *report) noteSettings(doc *document) {
	for name, paths := range setups {
		for _, path := range paths {
			switch v, _ := doc.get(path); v.(type) {
			case string, float64:
				text := fmt.Sprint(v)
				if n, err := strconv.ParseFloat(text, 64); err == nil && math.IsInf(n, 1) {
					text = "inf"
				}
				r.set(name, text)
			}
		}
	}
}
