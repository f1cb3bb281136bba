package metrics

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// fields takes members out of one object for one report. A path names members
// of members with "/" between them, because keys hold dots ("memory.total").
type fields struct {
	o    *object
	line int
	rep  *report
}

// member is what the number at a path means.
type member struct {
	path   string
	is     labelRule
	needed bool
}

// record copies the numbers that are there.
func (f fields) record(members []member) {
	for _, m := range members {
		n, ok := f.number(m.path)
		if m.needed && !ok {
			f.need(m.path)
		}
		if ok {
			f.rep.record(m.is, f.line, float64(n))
		}
	}
}

// setups are where reports say what they ran, with the name of it.
var setups = [][2]string{
	{"model", "model_id"}, {"model", "engine/model"}, {"model", "input_config/endpoint/model_names/0"},
	{"model", "input_config/model/0"},
	{"router", "router"}, {"experts", "shape/experts"}, {"top_k", "shape/top_k"}, {"layers", "layers"},
	{"hidden", "hidden"},
	{"tokens_per_rank", "tokens_per_rank"}, {"backend", "engine/backend"}, {"backend", "experts"},
	{"quantization", "engine/quantization"}, {"max_concurrency", "max_concurrency"}, {"request_rate", "request_rate"},
	{"num_prompts", "num_prompts"},
}

// setup notes what the object says of its model and of how that was run.
func (f fields) setup() {
	for _, s := range setups {
		switch v, _ := f.value(s[1]); v.(type) {
		case string, float64:
			f.rep.set(s[0], fmt.Sprint(v))
		}
	}
}

// set keeps the first value.
func (rep *report) set(name, value string) {
	if rep.setup == nil {
		rep.setup = map[string]string{}
	}
	if rep.setup[name] == "" {
		rep.setup[name] = value
	}
}

// value follows a path; absent or null is not ok.
func (f fields) value(path string) (v any, ok bool) {
	v = f.o
	for key := range strings.SplitSeq(path, "/") {
		if v, ok = f.rep.part(f.line, v, key); !ok {
			return nil, false
		}
	}
	return v, v != nil
}

// part is a member of an object or an element of a list.
func (rep *report) part(line int, of any, key string) (v any, ok bool) {
	switch of := of.(type) {
	case *object:
		v, ok, err := of.get(key)
		if err != nil {
			rep.fail(line, input.Error{Expected: "one value of key " + strconv.Quote(key), Found: "two that differ",
				Try: "pass the output of one launch", Err: err})
		}
		return v, ok
	case *list:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(of.items) {
			return of.items[i], true
		}
	}
	return nil, false
}

func (f fields) wrong(path, want string, v any) {
	f.rep.fail(f.line, input.Error{Expected: want + " in " + strconv.Quote(path), Found: kind(v)})
}

func kind(v any) string {
	switch x := v.(type) {
	case *object:
		return "an object"
	case *list:
		return "a list"
	case string:
		return fmt.Sprintf("the text %.40q", x)
	case nil:
		return "nothing"
	}
	return fmt.Sprint(v)
}

// need is a number that must be there.
func (f fields) need(path string) router.Number {
	if _, ok := f.value(path); !ok {
		f.rep.fail(f.line, input.Error{Expected: "key " + strconv.Quote(path), Found: "none"})
	}
	n, _ := f.number(path)
	return n
}

// number is a number that may be absent.
func (f fields) number(path string) (router.Number, bool) {
	v, ok := f.value(path)
	if !ok {
		return router.Undefined(), false
	}
	n, ok := number(v)
	if !ok {
		f.wrong(path, "a number", v)
	}
	return n, ok
}

// whole is a whole number that must be there.
func (f fields) whole(path string) int64 {
	n := float64(f.need(path))
	if f.rep.err == nil && (n != math.Trunc(n) || math.Abs(n) > 1<<31) {
		f.wrong(path, "a whole number", n)
		return 0
	}
	if math.IsNaN(n) {
		return 0
	}
	return int64(n)
}

// stated is a count of a Step that may be absent, undefined then.
func (f fields) stated(path string) router.OptInt {
	if n, ok := f.number(path); ok && n >= 0 && n < 1<<53 {
		return router.OptInt(n)
	}
	return router.NoID
}

func (f fields) flag(path string) bool {
	v, _ := f.value(path)
	b, ok := v.(bool)
	if !ok {
		f.wrong(path, "true or false", v)
	}
	return b
}

// list is a list of numbers that may be absent. One that was longer than
// maxElements is refused rather than averaged over its first part.
func (f fields) list(path string) ([]router.Number, bool) {
	v, ok := f.value(path)
	if !ok {
		return nil, false
	}
	l, ok := v.(*list)
	var numbers []router.Number
	for i := 0; ok && i < len(l.items); i++ {
		var n router.Number
		n, ok = number(l.items[i])
		numbers = append(numbers, n)
	}
	switch {
	case !ok:
		f.wrong(path, "a list of numbers", v)
		return nil, false
	case l.dropped > 0:
		f.rep.warn(fmt.Sprintf("%q is not used: it has %d values beyond the limit of %d per document", path, l.dropped,
			maxElements))
		return nil, false
	}
	return numbers, true
}

// statistics offers the members of an object of percentiles, minimum, maximum and
// mean, by their own and the vocabulary's name.
func (f fields) statistics(path string, use func(key, name string)) {
	v, ok := f.value(path)
	if !ok {
		return
	}
	o, ok := v.(*object)
	if !ok {
		f.wrong(path, "an object of statistics", v)
		return
	}
	for _, key := range o.keys {
		if name, ok := aggregateName(key); ok {
			use(key, name)
		}
	}
}

// spread reads an object of statistics. A mean that the report also gives beside
// it is not repeated.
func (f fields) spread(path, family string) {
	f.statistics(path, func(key, name string) {
		f.record([]member{{path + "/" + key, labelRule{metric: family + "_" + name}, false}})
	})
}

// lengths is the root mean square of a list of lengths, or of the statistics of one; 0
// where neither is there, or only its mean.
func (f fields) lengths(path string) router.Number {
	var values []any
	switch v, _ := f.value(path); v := v.(type) {
	case *list:
		if v.dropped == 0 {
			values = v.items
		}
	case *object:
		for _, key := range slices.Sorted(slices.Values(v.keys)) {
			name, ok := aggregateName(key)
			if n, known, _ := v.get(key); ok && known && name != "mean" && n != nil {
				values = append(values, n)
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
