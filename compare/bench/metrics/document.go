package metrics

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// document is one record of an output, flat: path → value. An object is one, and so is a printed line.
//
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

// set takes a value. A path given twice must have one value.
func (d *document) set(path string, v any) {
	if d.values == nil {
		d.values, d.clash = map[string]any{}, map[string]bool{}
	}
	old, twice := d.values[path]
	switch {
	case !twice:
		d.paths, d.values[path] = append(d.paths, path), v
	case !equal(old, v):
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

// readLabels takes the labels and values of a printed line. A unit behind a blank belongs to the label, and
// "Prefill." to every label behind it.
//
//	Total Latency (ms):   4000                             → "Total Latency (ms)" 4000
//	Throughput: 2.5 requests/s, 640 tokens/s               → "Throughput requests/s" 2.5, "Throughput tokens/s" 640
//	Prefill. latency: 0.5 s, throughput: 100 token/s       → "Prefill. latency s" 0.5, "Prefill. throughput token/s" 100
//	iter = 7, step_time = 12ms, states = {'num_ctx': 3}    → "iter" 7, "step_time" "12ms", "states/num_ctx" 3
func (d *document) readLabels() {
	if strings.IndexByte(d.text, ':') < 0 && !strings.Contains(d.text, " = ") {
		return
	}
	text, states, isRow := strings.Cut(d.text, "states = {")
	if at := strings.Index(text, "iter = "); isRow && at >= 0 {
		text = text[at:]
		var nested document
		_ = decodeObject(&source{from: strings.NewReader("{" + states)}, &nested) // what a cut row still says
		for _, path := range nested.paths {
			d.set("states/"+path, nested.values[path])
		}
	}
	section, head := "", ""
	if name, rest, ok := strings.Cut(text, ". "); ok && !strings.ContainsAny(name, ":=") {
		section, text = name+". ", rest
	}
	for part := range strings.SplitSeq(text, ", ") {
		label, value, ok := strings.Cut(part, " = ")
		if at := strings.LastIndexByte(part, ':'); !ok && at >= 0 {
			label, value, ok = part[:at], part[at+1:], true
		}
		switch {
		case ok:
			head = section + strings.Join(strings.Fields(label), " ")
		case head == "":
			continue
		default:
			value = part
		}
		digits, unit, _ := strings.Cut(strings.TrimSpace(value), " ")
		if v, err := strconv.ParseFloat(digits, 64); err == nil {
			d.set(strings.TrimSpace(head+" "+unit), v)
		} else if isRow && ok {
			d.set(head, strings.TrimSpace(value))
		}
	}
}
