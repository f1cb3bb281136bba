package metrics

import (
	"fmt"
	"math"
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
	{"tokens_per_rank", "tokens_per_rank"}, {"backend", "engine/backend"}, {"backend", "experts"}, {"backend", "backend"},
	{"quantization", "engine/quantization"}, {"max_concurrency", "max_concurrency"}, {"request_rate", "request_rate"},
	{"num_prompts", "num_prompts"},
}

// setup notes what the object says of its model and of how that was run.
func (f fields) setup() {
	for _, s := range setups {
		switch v, _ := f.value(s[1]); v.(type) {
		case string, float64:
			f.rep.set(s[0], settingText(v))
		}
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
