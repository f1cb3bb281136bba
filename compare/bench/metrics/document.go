package metrics

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// document is one record of an output, flat: an object, a line, or all labels that are printed under one title.
//
//	{"performance": {"total_latency_ms": 4}}  → "performance" object(1), "performance/total_latency_ms" 4
//	{"slots": [5, 7]}                         → "slots" list(2), "slots/0" 5, "slots/1" 7
//	Total Latency (ms):   4                   → "total latency" 4 in ms
//
// Members are joined by "/", because keys hold dots ("memory.total").
type document struct {
	line    int           // where it begins, from 1
	rank    router.OptInt // as a launcher's or logger's prefix says
	text    string        // as it stands in the output
	printed string        // a line behind what a launcher or logger put before it; "" for an object
	title   string        // of printed labels
	paths   []string      // in the order of the output
	values  map[string]value
}

// value is what stands at a path: a string, float64, bool or nil, or the number of members of an object or a list.
type value struct {
	is    any
	unit  string // of a printed number, as the tool writes it
	line  int
	other *value // the first that differs: a path must not have two values
}

// object and list are how many members they have.
type object int
type list int

func (object) String() string { return "an object" }
func (list) String() string   { return "a list" }

// set takes a value; one without a line stands where the document begins.
func (d *document) set(path string, v value) {
	if d.values == nil {
		d.values = map[string]value{}
	}
	v.line = cmp.Or(v.line, d.line)
	old, twice := d.values[path]
	if !twice {
		d.paths, d.values[path] = append(d.paths, path), v
	} else if old.other == nil && !equal(old.is, v.is) {
		old.other = &v
		d.values[path] = old
	}
}

// equal holds for two that are NaN, too, and for means that a tool sums up in another order.
func equal(a, b any) bool {
	x, ok := a.(float64)
	y, alike := b.(float64)
	return a == b || ok && alike && (math.IsNaN(x) && math.IsNaN(y) || math.Abs(x-y) <= 1e-12*math.Abs(x))
}

// of is the value at a path; nil where there is none.
func (d *document) of(path string) any { return d.values[path].is }

// has reports whether all paths are there, null or not.
func (d *document) has(paths ...string) bool {
	return !slices.ContainsFunc(paths, func(path string) bool { return d.values[path].line == 0 })
}

// count is the first number that can count something: "a", "b" of {"a": -1, "b": 3} → 3.
func (d *document) count(paths ...string) router.OptInt {
	for _, path := range paths {
		if v, ok := d.of(path).(float64); ok && v >= 0 && v < 1<<53 {
			return router.OptInt(v)
		}
	}
	return router.NoID
}

// printedNumber is a number, with a unit at it or words behind it: "12.5ms", "2.5 total tokens/s".
var printedNumber = regexp.MustCompile(`^([-+]?[\d.]+(?:[eE][-+]?\d+)?|[-+]?[Ii]nf|[Nn]a[Nn])([a-z]*)((?: .*)?)$`)

// backendTitle stands over what trtllm-bench prints of the engine.
var backendTitle = regexp.MustCompile(`^= (?:(.*) BACKEND|ENGINE DETAILS)\s*$`)

// readLine takes the labels of a printed line, in lower case, with their values. Words behind the number
// belong to the label, too, and "Prefill." to every label behind it.
//
//	Total Latency [TTFT] (ms):   4000                 → "total latency" 4000 in ms
//	Throughput: 2.5 requests/s, 640 tokens/s          → "throughput requests/s" 2.5, "throughput tokens/s" 640
//	Prefill. latency: 0.5 s, throughput: 100 token/s  → "prefill. latency s" 0.5, "prefill. throughput token/s" 100
//	= PYTORCH BACKEND                                 → "engine backend" "PYTORCH", as "= ENGINE DETAILS" "TensorRT"
//	NVIDIA H200, memory 139.81 GB, 3.20 GHz           → "gpu" "NVIDIA H200"
//	iter = 7, host_step_time = 12ms, states = {'num_ctx_tokens': 3}
//	    → "iter" 7, "host_step_time" 12 in ms, "states/num_ctx_tokens" 3
func (d *document) readLine() {
	part, label, unit := "", "", ""
	line := strings.TrimPrefix(d.printed[:min(len(d.printed), maxLine)], "Decode batch. ")
	text, states, of := strings.Cut(line, "states = {")
	if at := strings.Index(text, "iter = "); of && at >= 0 {
		text = text[at:]
		s := scanner{doc: d, text: states, token: "{"}
		s.value("states")
	} else if name, rest, ok := strings.Cut(text, ". "); ok && len(name) < 10 && !strings.ContainsAny(name, ":=") {
		part, text = name+". ", rest
	} else if m := backendTitle.FindStringSubmatch(line); m != nil {
		d.set("engine backend", value{is: cmp.Or(m[1], "TensorRT")})
	} else if gpu, _, ok := strings.Cut(line, ", memory "); ok {
		d.set("gpu", value{is: gpu})
	}
	for piece := range strings.SplitSeq(text, ", ") {
		before, after, ok := strings.Cut(piece, " = ")
		if at := strings.LastIndexByte(piece, ':'); !ok && at >= 0 {
			before, after, ok = piece[:at], piece[at+1:], true
		}
		if !ok {
			after = piece
		} else {
			label, unit = strings.ToLower(part+strings.Join(strings.Fields(before), " ")), ""
			if name, end, ok := strings.Cut(label, " ("); ok && units[strings.TrimSuffix(end, ")")].unit != "" {
				label, _, _ = strings.Cut(name, " [")
				unit = strings.TrimSuffix(end, ")")
			}
		}
		after = strings.TrimSpace(after)
		m := []string{"", after, "", ""}
		if rest := strings.TrimLeft(after, "+-.0123456789INin"); rest != "" && rest != after {
			m = append(printedNumber.FindStringSubmatch(after), m...)
		}
		if v, err := strconv.ParseFloat(m[1], 64); err == nil {
			words := strings.Fields(m[2] + unit + m[3])
			d.set(label+m[3], value{is: v, unit: strings.Join(words[max(0, len(words)-1):], "")})
		} else if ok && after != "None" {
			d.set(label, value{is: after})
		}
	}
}
