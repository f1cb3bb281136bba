package metrics

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// format is one layout of a tool's output: a row of formats.
type format struct {
	format      string
	percentiles string // how the tool takes percentiles, see metricOf
	// is recognizes an object of the format; nil for a printed report.
	is func(*document) bool
	// title is the line that begins a printed report; labels before it mean nothing. Reports without a
	// title are found by an anchor.
	title *regexp.Regexp
	// gap are the first and the last line of what is no part of the report, such as a warm-up.
	gap [2]string
	// means says what the number at a path or label is.
	means map[string]meaning
	// statistics are paths of percentiles and the like. Groups: stat, and of, a key of families.
	statistics *regexp.Regexp
	families   map[string]string
	factor     float64 // of the statistics; 0 means 1
	units      bool    // a number at a/avg has its unit at a/unit
	forms      []lineForm
	needs      []string // metrics that a whole report has
	// also reads what the table does not say.
	also func(*report, *document)
	// finish draws conclusions at the end of a report that was found.
	finish func(*report)
}

// meaning is what a number at a path is: a metric times a factor, a number of things, or what into
// does with it.
type meaning struct {
	metric string
	factor float64 // 0 means 1
	own    string  // a definition of its own, see metricOf
	count  func(*Work) *Count
	into   func(*report, router.Number)
	anchor bool   // only this format has it
	since  string // the oldest trtllm-bench that has the label, "" for the first
}

func metric(name string) meaning                { return meaning{metric: name} }
func seconds(name string) meaning               { return meaning{metric: name, factor: 1e3} }
func anchor(name, since string) meaning         { return meaning{metric: name, anchor: true, since: since} }
func ownMetric(name, definition string) meaning { return meaning{metric: name, own: definition} }

// The numbers of things.
var (
	requests     = meaning{metric: "requests", count: func(w *Work) *Count { return &w.Requests }}
	inputTokens  = meaning{metric: "input tokens", count: func(w *Work) *Count { return &w.InputTokens }}
	outputTokens = meaning{metric: "output tokens", count: func(w *Work) *Count { return &w.OutputTokens }}
	failures     = meaning{metric: "failed requests", count: func(w *Work) *Count { return &w.Errors }}
	meanInput    = meaning{into: func(r *report, v router.Number) { r.inputLength = v }}
	meanOutput   = meaning{into: func(r *report, v router.Number) { r.outputLength = v }}
	epSize       = meaning{into: func(r *report, v router.Number) {
		if v >= 1 && v <= maxRanks {
			r.proof.Ranks = int(v)
		}
	}}
)

// meaningOf is the meaning of a path in the format.
func (f *format) meaningOf(path string) (meaning, bool) {
	if m, ok := f.means[path]; ok {
		return m, true
	}
	if f.statistics == nil {
		return meaning{}, false
	}
	g := f.statistics.FindStringSubmatch(path)
	if g == nil {
		return meaning{}, false
	}
	of := ""
	if i := f.statistics.SubexpIndex("of"); i > 0 {
		of = g[i]
	}
	stat, ok := aggregateName(g[f.statistics.SubexpIndex("stat")])
	return meaning{metric: f.families[of] + "_" + stat, factor: f.factor}, ok
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
	for _, form := range r.forms {
		form.pairs(doc.text, func(label, value string) {
			m, ok := r.meaningOf(label)
			v, err := strconv.ParseFloat(value, 64)
			if ok && err != nil {
				r.fail(doc.line, input.Error{Expected: "a number for " + m.metric, Found: strconv.Quote(value)})
			} else if ok {
				n, _ := number(v)
				r.found = true
				r.record(m, doc, label, n)
			}
		})
	}
	if r.also != nil {
		r.also(r, doc)
	}
	if r.is != nil {
		r.note(doc)
	}
}

// inside reports whether a line is below the title of the report and in no gap of it.
func (r *report) inside(doc *document) bool {
	switch {
	case r.title != nil && r.title.MatchString(doc.text):
		r.found = true
		return false
	case r.gap[0] != "" && strings.Contains(doc.text, r.gap[0]):
		r.skips = true
	case r.skips && strings.Contains(doc.text, r.gap[1]):
		r.skips = false
		return false
	}
	return !r.skips && (r.title == nil || r.found)
}

// record puts a number into the report.
func (r *report) record(m meaning, doc *document, path string, v router.Number) {
	r.found = r.found || m.anchor
	r.since = max(r.since, m.since)
	switch {
	case m.into != nil:
		m.into(r, v)
	case m.count != nil:
		r.count(doc.line, m.metric, m.count(&r.work), float64(v))
	default:
		of := metricOf(m.metric, r.rule, m.own, v*router.Number(cmp.Or(m.factor, 1)))
		if r.units {
			unit, _ := doc.get(path[:strings.LastIndexByte(path, '/')+1] + "unit")
			text, _ := unit.(string)
			factor, ok := unitFactors[of.Unit][strings.ToLower(text)]
			if !ok {
				r.wrong(doc, path[:strings.LastIndexByte(path, '/')+1]+"unit", "a known unit of "+of.Unit, unit)
				return
			}
			of.Value *= router.Number(factor)
		}
		r.metric(doc.line, of)
	}
}

// unitFactors turn a unit as exports write it into the vocabulary's.
var unitFactors = map[string]map[string]float64{
	"ms": {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1, "milliseconds": 1, "s": 1e3, "sec": 1e3, "seconds": 1e3,
		"nanoseconds": 1e-6, "microseconds": 1e-3},
	"tok/s": {"tokens/sec": 1, "tokens/sec/user": 1, "tokens/s": 1, "tok/s": 1, "tokens/second": 1,
		"tokens/second/user": 1},
	"req/s": {"requests/sec": 1, "requests/s": 1, "req/s": 1, "requests/second": 1, "per_sec": 1},
}
