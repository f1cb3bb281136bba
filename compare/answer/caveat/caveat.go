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

// The severities.
const (
	Doubt   Severity = "doubt"   // no gate passes
	Warn    Severity = "warning" // may change how the numbers read
	Unknown Severity = "unknown" // a check whose input was not recorded
	Note    Severity = "note"
)

// Severities are all, the most severe first.
var Severities = []Severity{Doubt, Warn, Unknown, Note}

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

// Say words a row of answers, and reports whether there is one whose values are all known.
func Say(key string, values router.Args) (text string, whole bool) {
	row, there := sentences[key]
	text, whole = Fill(row, values)
	return text, there && whole
}

// Step words what to do next, and its command, and reports whether all values of both are known. What bench fills
// in stands in ‹angle quotes›: {concurrency}.
func Step(key string, values router.Args) (text, command string, whole bool) {
	row, there := steps[key]
	text, one := Fill(row[0], values)
	command, other := Fill(row[1], values)
	if command = strings.NewReplacer("‹", "{", "›", "}").Replace(command); command != "" && command[0] >= 'a' {
		command = "moebalance " + command
	}
	return text, command, there && one && other
}

// Known reports a warning that the catalog has words for.
func Known(w router.Warning) bool { return words(w.Key()) != "" && (w.Args != nil || w.Text == "") }

// Each words a warning once for each entry of the list that its sentence joins: "the arms differ in a; b" → "the arms
// differ in a", "the arms differ in b".
func Each(w router.Warning) (texts []string) {
	for name, v := range w.Args {
		if list, ok := v.([]any); ok && strings.Contains(words(w.Key()), "{"+name+":;}") {
			for _, one := range list {
				single := maps.Clone(w.Args)
				single[name] = one
				texts = append(texts, Text(router.Warning{Code: w.Code, Args: single}))
			}
			return texts
		}
	}
	return []string{Text(w)}
}

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
