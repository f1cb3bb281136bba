package metrics

import (
	"strconv"
	"strings"
)

// textFormat is a kind of printed report: what its lines mean, and what must be
// there. Lines are offered to all formats; one that has seen its anchor counts
// as found.
type textFormat struct {
	name string
	// line reads a line into the report; found is set on rep when the line can only
	// be of this format.
	line func(rec record, rep *report)
	// needs are the metrics a whole report has, each by its alternatives.
	needs [][]string
	// finish, where set, draws conclusions at the end of a report that was found.
	finish func(rep *report)
}

// textFormats in the order their names are listed.
var textFormats = []textFormat{
	trtllmText,
	servingText,
	vllmThroughputText,
	vllmLatencyText,
	gptManagerText,
	iterationText,
}

// labelled takes "Label:   value" apart. The label may hold colons, the value
// must be a number. Runs of white space in the label become one space; the label
// is empty when the line is not of this kind.
func labelled(text string) (label string, v float64) {
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

// entry is what a label of a report means: a metric times a factor, or a number
// of things.
type entry struct {
	metric string
	factor float64 // 0 means 1
	own    string  // definition, where it is not the vocabulary's
	count  func(*Work) *Count
	anchor bool // the line can only be of this format
}

// take puts a labelled value into the report.
func (e entry) take(rec record, rule string, v float64, rep *report) {
	rep.found = rep.found || e.anchor
	if e.count != nil {
		rep.count(rec.line, e.metric, e.count(&rep.work), v)
		return
	}
	if e.factor != 0 {
		v *= e.factor
	}
	n, _ := number(v)
	rep.metric(rec.line, metricOf(e.metric, rule, e.own, n))
}

// known takes the value of a labelled line if its label is one of those.
func known(labels map[string]entry, rec record, rule string, rep *report) bool {
	e, ok := labels[rec.label]
	if ok {
		e.take(rec, rule, rec.value, rep)
	}
	return ok
}

func requests(w *Work) *Count     { return &w.Requests }
func inputTokens(w *Work) *Count  { return &w.InputTokens }
func outputTokens(w *Work) *Count { return &w.OutputTokens }
func failures(w *Work) *Count     { return &w.Errors }
