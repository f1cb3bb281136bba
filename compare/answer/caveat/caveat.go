// Package caveat is the catalog of what results say: a code with values in, a sentence out. It is the one
// place that has the words of answers, warnings, checks and next steps, so that one thing has one name;
// packages that warn or answer have codes and numbers.
package caveat

import (
	"cmp"
	"fmt"
	"maps"
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

// SeverityOf is how much a warning weighs.
func SeverityOf(w router.Warning) Severity { return cmp.Or(severities[w.Code], Note) }

// Group identifies the caveat that a warning belongs to, by its key and its lists of numbers, such as the
// steps of one arm.
func Group(w router.Warning) string {
	lists := router.Args{}
	for name, v := range w.Args {
		if _, numbers := split(v); several(v) && len(numbers) > 0 {
			lists[name] = v
		}
	}
	return w.Key() + fmt.Sprint(lists)
}

func several(v any) bool { _, ok := v.([]any); return ok }

// Say words a row of answers, and reports whether all its values are known.
func Say(key string, values router.Args) (text string, whole bool) {
	return Fill(sentences[key], values)
}

// Step words what to do next, and its command, and reports whether all values of both are known.
func Step(key string, values router.Args) (text, command string, whole bool) {
	text, one := Fill(steps[key][0], values)
	command, other := Fill(steps[key][1], values)
	if command != "" && command[0] >= 'a' {
		command = "moebalance " + command
	}
	return text, command, one && other
}

// Known reports a warning that the catalog has words for.
func Known(w router.Warning) bool { return words(w.Key()) != "" && (w.Args != nil || w.Text == "") }

// Text words a warning. A warning that the catalog lacks brings its own words, or is told by its
// name and values: out_of_range with 3 rows → "out of range (rows 3)".
func Text(w router.Warning) string {
	if text, whole := Fill(words(w.Key()), w.Args); whole && Known(w) {
		return text
	}
	if w.Text != "" {
		return w.Text
	}
	name, values := strings.ReplaceAll(w.Code, "_", " "), []string{}
	for _, key := range slices.Sorted(maps.Keys(w.Args)) {
		if v := w.Args[key]; key != "why" && has(v) {
			values = append(values, strings.ReplaceAll(key, "_", " ")+" "+write(v, "~"))
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
