package metrics

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// document is one record of an output, flat: path → value.
//
//	Total Latency (ms):   4000                → "Total Latency (ms)" 4000
//	{"performance": {"total_latency_ms": 4}}  → "performance" an object, "performance/total_latency_ms" 4
//
// Members are joined by "/", because keys hold dots ("memory.total").
type document struct {
	line int    // counted from 1
	raw  string // without color codes; of an object its beginning
	text string // a line without what a launcher or logger put before it; "" for an object
	rank int    // the rank a launcher's prefix names; −1 without one
	open bool   // the output ends inside this line

	paths  []string       // in the order of the output
	values map[string]any // string, float64, bool, nil, *list or object
	clash  map[string]bool
}

// object stands for a nested object, whose members have paths of their own.
type object struct{}

// list is an array. Values beyond the document's budget are read but not kept.
type list struct {
	items   []any
	dropped int
}

func newDocument(line, rank int) *document {
	return &document{line: line, rank: rank}
}

// set takes a value. A path given twice must have one value.
func (d *document) set(path string, v any) {
	old, ok := d.values[path]
	switch {
	case d.values == nil:
		d.values = map[string]any{}
		fallthrough
	case !ok:
		d.paths, d.values[path] = append(d.paths, path), v
		return
	}
	if !equal(old, v) {
		if d.clash == nil {
			d.clash = map[string]bool{}
		}
		d.clash[path] = true
	}
}

func equal(a, b any) bool {
	switch x := a.(type) {
	case float64:
		y, ok := b.(float64)
		return ok && (x == y || math.IsNaN(x) && math.IsNaN(y))
	case *list:
		y, ok := b.(*list)
		return ok && x.dropped == y.dropped && slices.EqualFunc(x.items, y.items, equal)
	}
	return a == b
}

// get follows a path, also to an element of a list; absent or null is not ok.
func (d *document) get(path string) (v any, ok bool) {
	v, ok = d.values[path]
	if at := strings.LastIndexByte(path, '/'); !ok && at >= 0 {
		l, isList := d.values[path[:at]].(*list)
		if i, err := strconv.Atoi(path[at+1:]); err == nil && isList && i >= 0 && i < len(l.items) {
			v = l.items[i]
		}
	}
	return v, v != nil
}

// has reports whether all paths are there, null or not.
func (d *document) has(paths ...string) bool {
	return !slices.ContainsFunc(paths, func(path string) bool { _, ok := d.values[path]; return !ok })
}

// has recognizes documents with all the paths.
func has(paths ...string) func(*document) bool {
	return func(d *document) bool { return d.has(paths...) }
}

// kind names a value in an error: "a list", "the text "fast"".
func kind(v any) string {
	switch x := v.(type) {
	case object:
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

// number is the float of a value; an infinity or NaN is undefined.
func number(v any) (router.Number, bool) {
	x, ok := v.(float64)
	if !ok || math.IsInf(x, 0) {
		return router.Undefined(), ok
	}
	return router.Number(x), true
}

// labeled takes "Label:   value" apart. The label may hold colons, the value
// must be a number. Runs of white space in the label become one space; the label
// is empty when the line is not of this kind.
func labeled(text string) (label string, v float64) {
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		return "", 0
	}
	digits := strings.TrimSpace(text[at+1:])
	if digits == "" || strings.IndexByte("0123456789+-.iInN", digits[0]) < 0 {
		return "", 0
	}
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return "", 0
	}
	return strings.Join(strings.Fields(text[:at]), " "), v
}

// lineForm takes numbers out of a line that is not "Label: value".
type lineForm struct {
	hint string         // a text that every such line holds
	line *regexp.Regexp // its first group, if any, begins every label
	pair *regexp.Regexp // groups label and value
}

// pairs are the labels and numbers of a line:
//
//	Prefill. latency: 0.50 s, throughput: 100.00 token/s  → "Prefill latency" 0.5, "Prefill throughput" 100
func (f lineForm) pairs(text string, use func(label, value string)) {
	if !strings.Contains(text, f.hint) {
		return
	}
	m := f.line.FindStringSubmatch(text)
	if m == nil {
		return
	}
	head := strings.Join(m[1:], "")
	label, value := f.pair.SubexpIndex("label"), f.pair.SubexpIndex("value")
	for _, p := range f.pair.FindAllStringSubmatch(text, -1) {
		use(strings.TrimSpace(head+" "+p[label]), p[value])
	}
}
