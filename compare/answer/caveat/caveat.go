// Package caveat is the catalog of what results say: a code with values in, a sentence out. It is the one
// place that has the words of answers, warnings, checks and next steps, so that one thing has one name;
// packages that warn or answer have codes and numbers.
package caveat

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// Severity is how much a caveat weighs.
type Severity string

// The severities, in the order in which they are shown.
const (
	Doubt   Severity = "doubt"   // no gate passes
	Warn    Severity = "warning" // may change how the numbers read
	Unknown Severity = "unknown" // a check whose input was not recorded
	Note    Severity = "note"
)

// entry words a warning, or what a check found, whose status is its severity.
type entry struct {
	severity Severity
	text     string
}

// Group identifies the caveat that a warning belongs to, by its key and its lists of numbers, such as the
// steps of one arm.
func Group(w router.Warning) string {
	lists := router.Args{}
	for name, v := range w.Args {
		if numbers, ok := v.([]any); ok && len(of[float64](numbers)) > 0 {
			lists[name] = v
		}
	}
	return w.Key() + fmt.Sprint(lists)
}

// find is the entry of a warning: of its case, or else of its code. What the reader of counts says
// beside a trace has a prefix.
func find(w router.Warning) (e entry, ok bool) {
	for _, key := range []string{w.Key(), w.Code} {
		for _, key := range []string{key, strings.TrimPrefix(key, "counts_")} {
			if e, ok = catalog[key]; ok {
				return e, w.Args != nil || w.Text == ""
			}
		}
	}
	return entry{}, false
}

// Say words a row of answers, and reports whether all its values are known.
func Say(key string, values router.Args) (text string, whole bool) {
	return Fill(sentences[key], values)
}

// Step words what to do next, and its command, and reports whether all values of both are known.
func Step(key string, values router.Args) (text, command string, whole bool) {
	text, one := Fill(steps[key][0], values)
	command, other := Fill(steps[key][1], values)
	return text, command, one && other
}

// Known reports a warning that the catalog has words for.
func Known(w router.Warning) bool {
	_, ok := find(w)
	return ok
}

// SeverityOf is how much a warning weighs.
func SeverityOf(w router.Warning) Severity {
	e, _ := find(w)
	return cmp.Or(e.severity, Note)
}

// Text words a warning. A warning that the catalog lacks brings its own words, or is told by its
// name and values: open_ranges with 3 rows → "open ranges (rows 3)".
func Text(w router.Warning) string {
	if e, ok := find(w); ok {
		if text, whole := Fill(e.text, w.Args); whole {
			return text
		}
	}
	if w.Text != "" {
		return w.Text
	}
	name, values := strings.ReplaceAll(w.Code, "_", " "), []string{}
	for _, key := range slices.Sorted(maps.Keys(w.Args)) {
		v, format := w.Args[key], ""
		if x, ok := v.(float64); ok && x != math.Trunc(x) {
			format = "~"
		}
		if key != "why" && has(v) {
			values = append(values, strings.ReplaceAll(key, "_", " ")+" "+write(v, format))
		}
	}
	if why, ok := w.Args["why"].(string); ok {
		name += ": " + cmp.Or(unchecked[why], strings.ReplaceAll(why, "_", " "))
	}
	if len(values) > 0 {
		name += " (" + strings.Join(values, ", ") + ")"
	}
	return name
}
