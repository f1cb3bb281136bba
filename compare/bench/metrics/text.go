package metrics

import (
	"regexp"
	"strconv"
	"strings"
)

// textFormat is a kind of printed report: what its lines mean, and what must be
// there. Lines are offered to all formats; one that has seen its anchor counts
// as found.
type textFormat struct {
	name string
	rule string // how the tool takes percentiles, see metricOf
	// labels are the lines "Label:   value".
	labels map[string]labelRule
	// spread are the labels of statistics, such as "P99 TTFT (ms)": its groups are
	// the aggregate, stat, and the word for what it is of, a key of families.
	spread   *regexp.Regexp
	families map[string]string
	// line, where set, looks at a line first and returns its label, which may stand
	// in another form or have no meaning yet.
	line  func(rec record, rep *report) (label string, v float64)
	needs []string // metrics that a whole report has
	// finish, where set, draws conclusions at the end of a report that was found.
	finish func(rep *report)
}

// textFormats in the order their names are listed.
var textFormats = []textFormat{
	trtllmText,
	servingText,
	vllmThroughputText,
	vllmLatencyText,
	iterationText,
	oneBatchServerText,
}

// read takes a line into the report.
func (f *textFormat) read(rec record, rep *report) {
	label, v := rec.label, rec.value
	if f.line != nil {
		label, v = f.line(rec, rep)
	}
	if label == "" {
		return
	}
	e, ok := f.labels[label]
	if !ok && f.spread != nil {
		if m := f.spread.FindStringSubmatch(label); m != nil {
			var stat string
			stat, ok = aggregateName(m[f.spread.SubexpIndex("stat")])
			e.metric = f.families[m[f.spread.SubexpIndex("of")]] + "_" + stat
		}
	}
	if ok {
		rep.record(e, rec.line, v)
	}
}

// labeled takes "Label:   value" apart. The label may hold colons, the value
// must be a number. Runs of white space in the label become one space; the label
// is empty when the line is not of this kind.
func labeled(text string) (label string, v float64) {
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		return "", 0
	}
	number := strings.TrimSpace(text[at+1:])
	if number == "" || strings.IndexByte("0123456789+-.iInN", number[0]) < 0 {
		return "", 0
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return "", 0
	}
	label = strings.TrimSpace(text[:at])
	if strings.ContainsRune(label, '\t') || strings.Contains(label, "  ") {
		label = strings.Join(strings.Fields(label), " ")
	}
	return label, v
}

// labelRule is what a label or a member of a report means: a metric times a factor, a
// number of things, or what into does with it.
type labelRule struct {
	metric string
	factor float64 // 0 means 1
	count  func(*Work) *Count
	into   func(*report, float64)
	anchor bool // the line can only be of this format
	// generation is the oldest of trtllm-bench that has the label, "" for the first.
	generation string
}

// The numbers of things.
var (
	requests     = labelRule{metric: "requests", count: func(w *Work) *Count { return &w.Requests }}
	inputTokens  = labelRule{metric: "input tokens", count: func(w *Work) *Count { return &w.InputTokens }}
	outputTokens = labelRule{metric: "output tokens", count: func(w *Work) *Count { return &w.OutputTokens }}
	failures     = labelRule{metric: "failed requests", count: func(w *Work) *Count { return &w.Errors }}
)

// record puts a value into the report.
func (rep *report) record(e labelRule, line int, v float64) {
	rep.found = rep.found || e.anchor
	rep.generation = max(rep.generation, e.generation)
	switch {
	case e.into != nil:
		e.into(rep, v)
	case e.count != nil:
		rep.count(line, e.metric, e.count(&rep.work), v)
	default:
		if e.factor != 0 {
			v *= e.factor
		}
		n, _ := number(v)
		rep.metric(line, metricOf(e.metric, rep.rule, "", n))
	}
}
