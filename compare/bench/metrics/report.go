package metrics

import (
	"cmp"
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
	name   string // of the format, or of the variant that a line names
	rule   string // how the tool takes percentiles, see metricOf
	out    Result // what is found besides numbers
	found  []finding
	since  string // the newest label of trtllm-bench: "" for a, b or c
	log    *iterationLog
	cut    int   // iteration rows beyond maxSteps
	skips  bool  // within the gap
	known  bool  // the format has recognized itself
	failed error // the first fault
}

// finding is a number and where it stands: a metric, or a number of things by its name.
type finding struct {
	Metric
	line int // 0 is the whole report
}

func newReport(f *format) *report { return &report{format: f, name: f.name, rule: f.rule} }

// fail keeps the first fault.
func (r *report) fail(line int, e input.Error) {
	e.Position = r.name + " report"
	if line > 0 {
		e.Position = "line " + strconv.Itoa(line) + " (" + r.name + ")"
	}
	if r.failed == nil {
		r.failed = &e
	}
}

// put records a number. The same again must have the same value: a warm-up report and a main report in one
// output are two launches.
func (r *report) put(line int, m Metric) {
	i := r.at(m.Name)
	if i < 0 {
		r.found = append(r.found, finding{m, line})
		return
	}
	old, text := r.found[i], func(v router.Number) string { return strconv.FormatFloat(float64(v), 'g', -1, 64) }
	if sameNumber(old.Value, m.Value) && old.Definition == m.Definition {
		return
	}
	try := "pass the output of one launch"
	if r.name == customFormat {
		try = "make the --metric rule match only one of them, or choose: NAME:UNIT:higher:last=REGEX, or :median"
	}
	r.fail(line, input.Error{Expected: fmt.Sprintf("%s = %s (line %d) as before", m.Name, text(old.Value), old.line),
		Found: text(m.Value), Try: try, Err: errTwice})
}

func sameNumber(a, b router.Number) bool { return a == b || !a.Defined() && !b.Defined() }

// at is where a number is among those found, −1 where it is not.
func (r *report) at(name string) int {
	return slices.IndexFunc(r.found, func(f finding) bool { return f.Name == name })
}

// of is a number that was found; undefined where it was not.
func (r *report) of(name string) (v router.Number, line int) {
	if i := r.at(name); i >= 0 {
		return r.found[i].Value, r.found[i].line
	}
	return router.Undefined(), 0
}

// count is a number of things, or the number of requests times a mean.
func (r *report) count(name, mean string) Count {
	v, line := r.of(name)
	if r.at(name) < 0 && mean != "" {
		each, _ := r.of(mean)
		all, _ := r.of(requests.to)
		v = router.Number(math.Round(float64(all * each)))
		if !(v >= 0 && v <= 1<<53) {
			return Count{}
		}
	}
	switch {
	case r.at(name) < 0 && !v.Defined():
		return Count{}
	case !(v >= 0 && v <= 1<<53) || v != router.Number(math.Trunc(float64(v))):
		r.fail(line, input.Error{Expected: "a whole number of " + name, Found: strconv.FormatFloat(float64(v), 'g', -1, 64)})
	}
	return Exactly(int64(v))
}

// end draws conclusions, and sorts what was found.
func (r *report) end() {
	if r.finish != nil && r.failed == nil {
		r.finish(r)
	}
	for _, name := range r.needs {
		if r.at(name) < 0 {
			r.fail(0, input.Error{Expected: name, Found: "none: the output is cut or from an unknown release"})
		}
	}
	r.out.Format = r.name
	r.out.Work = Work{Requests: r.count(requests.to, ""), InputTokens: r.count(inputTokens.to, meanInput.to),
		OutputTokens: r.count(outputTokens.to, meanOutput.to), Errors: r.count(failures.to, "")}
	proof := &r.out.Proof
	if v, _ := r.of(expertFloor.to); v.Defined() {
		proof.ExpertFloor = v
	}
	if v, _ := r.of(rankFloor.to); v.Defined() {
		proof.RankFloor = v
	}
	if n, line := r.of(ranks.to); n > maxRanks {
		r.fail(line, input.Error{Expected: fmt.Sprintf("at most %d ranks", maxRanks), Found: kind(float64(n))})
	} else if n >= 1 {
		proof.Ranks = int(n)
	}
	for _, f := range r.found {
		if !slices.Contains(things, f.Name) {
			r.out.Metrics = append(r.out.Metrics, f.Metric)
		}
	}
	if r.cut > 0 {
		r.warn(fmt.Sprintf("%d iteration rows beyond the first %d were dropped", r.cut, maxSteps))
	}
}

func (r *report) step(s Step) {
	if len(r.out.Steps) < maxSteps {
		r.out.Steps = append(r.out.Steps, s)
	} else {
		r.cut++
	}
}

// warn adds a warning that is not there yet.
func (r *report) warn(text string) {
	if !slices.Contains(r.out.Warnings, text) {
		r.out.Warnings = append(r.out.Warnings, text)
	}
}

// set keeps the first value of a setting.
func (r *report) set(name, value string) {
	if r.out.Setup == nil {
		r.out.Setup = map[string]string{}
	}
	r.out.Setup[name] = cmp.Or(r.out.Setup[name], value)
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
	v, there := r.value(doc, path)
	n, ok := number(v)
	if there && !ok {
		r.wrong(doc, path, "a number", v)
	}
	return n, ok
}

// list is a list of numbers that may be absent. One that was longer than
// maxElements is refused rather than averaged over its first part.
func (r *report) list(doc *document, path string) (numbers []router.Number, ok bool) {
	v, there := r.value(doc, path)
	if !there {
		return nil, false
	}
	l, ok := v.(*list)
	for i := 0; ok && i < len(l.items); i++ {
		var n router.Number
		n, ok = number(l.items[i])
		numbers = append(numbers, n)
	}
	switch {
	case !ok:
		r.wrong(doc, path, "a list of numbers", v)
	case l.dropped > 0:
		r.warn(fmt.Sprintf("%q is not used: it has %d values beyond the limit of %d per document", path, l.dropped,
			maxElements))
	default:
		return numbers, true
	}
	return nil, false
}

// rootMeanSquare is taken over a list of lengths, or over the statistics of one; 0
// where neither is there, or only its mean.
func rootMeanSquare(doc *document, path string) router.Number {
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
