package metrics

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"gonum.org/v1/gonum/stat"
)

// report is what one format has found in an output so far.
type report struct {
	*format
	name     string // of the format, or of the variant that a line names
	rule     string // how the tool takes percentiles, see metricOf
	metrics  []Metric
	lines    []int // where each metric was found
	work     Work
	lengths  Lengths
	proof    Proof
	setup    map[string]string
	steps    []Step
	cutRows  int // iteration rows beyond maxSteps
	warnings []string
	// inputLength and outputLength are means over the requests, for reports without
	// totals; undefined where the report does not give them.
	inputLength, outputLength router.Number
	since                     string // the newest label of trtllm-bench: "" for a, b or c
	log                       *iterationLog
	runs                      []Result // of a sweep

	skips bool  // within the gap
	found bool  // the format has recognized itself
	err   error // the first fault
}

func newReport(f *format) *report {
	return &report{format: f, name: f.name, rule: f.rule, inputLength: router.Undefined(),
		outputLength: router.Undefined()}
}

// fail keeps the first fault. Line 0 is the whole report.
func (r *report) fail(line int, e input.Error) {
	if r.err != nil {
		return
	}
	e.Position = r.name + " report"
	if line > 0 {
		e.Position = "line " + strconv.Itoa(line) + " (" + r.name + ")"
	}
	r.err = &e
}

// failTwice is about two values of one thing.
func (r *report) failTwice(line int, what, first, second string) {
	try := "pass the output of one launch"
	if r.name == customFormat {
		try = "make the --metric rule match only one of them, or choose: NAME:UNIT:higher:last=REGEX, or :median"
	}
	r.fail(line, input.Error{Expected: what + " = " + first + " as before", Found: second, Try: try, Err: errTwice})
}

// metric records a metric. The same metric again must have the same value:
// a warm-up report and a main report in one output are two launches.
func (r *report) metric(line int, m Metric) {
	i := slices.IndexFunc(r.metrics, func(old Metric) bool { return old.Name == m.Name })
	if i < 0 {
		r.metrics, r.lines = append(r.metrics, m), append(r.lines, line)
		return
	}
	if old := r.metrics[i]; !sameNumber(old.Value, m.Value) || old.Definition != m.Definition {
		at := strconv.FormatFloat(float64(old.Value), 'g', -1, 64) + " (line " + strconv.Itoa(r.lines[i]) + ")"
		r.failTwice(line, m.Name, at, strconv.FormatFloat(float64(m.Value), 'g', -1, 64))
	}
}

func sameNumber(a, b router.Number) bool { return a == b || !a.Defined() && !b.Defined() }

// count records a number of things, which must not contradict an earlier one.
func (r *report) count(line int, what string, into *Count, v float64) {
	n := Exactly(int64(v))
	switch {
	case !(v >= 0 && v <= 1<<53) || v != math.Trunc(v):
		r.fail(line, input.Error{Expected: "a whole number of " + what, Found: strconv.FormatFloat(v, 'g', -1, 64)})
	case into.Known && *into != n:
		r.failTwice(line, what, strconv.FormatInt(into.N, 10), strconv.FormatInt(n.N, 10))
	default:
		*into = n
	}
}

// countTokens turns mean lengths into the token counts that were not given.
func (r *report) countTokens() {
	total := func(into *Count, mean router.Number) {
		v := router.Number(r.work.Requests.N) * mean
		if r.work.Requests.Known && !into.Known && v >= 0 && v <= 1<<53 {
			*into = Exactly(int64(math.Round(float64(v))))
		}
	}
	total(&r.work.InputTokens, r.inputLength)
	total(&r.work.OutputTokens, r.outputLength)
}

func (r *report) step(s Step) {
	if len(r.steps) >= maxSteps {
		r.cutRows++
		return
	}
	r.steps = append(r.steps, s)
}

// timed adds steps of which nothing but their times is known.
func (r *report) timed(times []router.Number, factor router.Number, clock string) {
	for i, t := range times {
		r.step(Step{Iter: int64(i), Rank: router.NoID, Requests: router.NoID, ContextTokens: router.NoID,
			GeneratedTokens: router.NoID, TimeMS: factor * t, Clock: clock})
	}
}

// warn adds a warning that is not there yet.
func (r *report) warn(text string) {
	if !slices.Contains(r.warnings, text) {
		r.warnings = append(r.warnings, text)
	}
}

// settingText is a setting as text, in which every spelling of infinity is one: JSON's Infinity
// of one client is the text "inf" of another.
func settingText(v any) string {
	text := fmt.Sprint(v)
	if n, err := strconv.ParseFloat(text, 64); err == nil && math.IsInf(n, 1) {
		return "inf"
	}
	return text
}

func (r *report) wrong(doc *document, path, want string, v any) {
	r.fail(doc.line, input.Error{Expected: want + " in " + strconv.Quote(path), Found: kind(v)})
}

// value follows a path, which must not have two values; absent or null is not ok.
func (r *report) value(doc *document, path string) (v any, ok bool) {
	if doc.clash[path] {
		key := path[strings.LastIndexByte(path, '/')+1:]
		r.fail(doc.line, input.Error{Expected: "one value of key " + strconv.Quote(key), Found: "two that differ",
			Try: "pass the output of one launch", Err: errTwice})
	}
	return doc.get(path)
}

// number is a number that may be absent.
func (r *report) number(doc *document, path string) (router.Number, bool) {
	v, ok := r.value(doc, path)
	if !ok {
		return router.Undefined(), false
	}
	n, ok := number(v)
	if !ok {
		r.wrong(doc, path, "a number", v)
	}
	return n, ok
}

// list is a list of numbers that may be absent. One that was longer than
// maxElements is refused rather than averaged over its first part.
func (r *report) list(doc *document, path string) (numbers []router.Number, ok bool) {
	v, ok := r.value(doc, path)
	if !ok {
		return nil, false
	}
	l, ok := v.(*list)
	for i := 0; ok && i < len(l.items); i++ {
		var n router.Number
		n, ok = number(l.items[i])
		numbers = append(numbers, n)
	}
	if !ok {
		r.wrong(doc, path, "a list of numbers", v)
		return nil, false
	}
	if l.dropped > 0 {
		r.warn(fmt.Sprintf("%q is not used: it has %d values beyond the limit of %d per document", path, l.dropped,
			maxElements))
		return nil, false
	}
	return numbers, true
}

// rootMeanSquare is taken over a list of lengths, or over the statistics of one; 0
// where neither is there, or only its mean.
func (r *report) rootMeanSquare(doc *document, path string) router.Number {
	var values []any
	if l, ok := doc.values[path].(*list); ok && l.dropped == 0 {
		values = l.items
	}
	for _, at := range slices.Sorted(slices.Values(doc.paths)) {
		if key, ok := strings.CutPrefix(at, path+"/"); ok && !strings.Contains(key, "/") {
			if name, _ := aggregateName(key); name != "mean" && doc.values[at] != nil {
				values = append(values, doc.values[at])
			}
		}
	}
	sum := 0.0
	for _, v := range values {
		n, _ := number(v)
		sum += float64(n * n)
	}
	if mean := sum / float64(len(values)); mean > 0 { // not NaN, of none or of something else
		return router.Number(math.Sqrt(mean))
	}
	return 0
}

// summary is the mean, the median (mean of the middle two for an even number)
// and the minimum; undefined if one of the numbers is.
func summary(v []router.Number) (mean, median, least router.Number) {
	sorted := make([]float64, len(v))
	for i, x := range v {
		sorted[i] = float64(x)
	}
	slices.Sort(sorted)
	if len(sorted) == 0 || math.IsNaN(sorted[0]) { // NaN comes first
		return router.Undefined(), router.Undefined(), router.Undefined()
	}
	n := len(sorted)
	return router.Number(stat.Mean(sorted, nil)), router.Number((sorted[(n-1)/2] + sorted[n/2]) / 2),
		router.Number(sorted[0])
}
