// Package caveat is the catalog of every sentence that a result says: a code with values in, a sentence out.
//
// It has the words of answers, reasons and next steps as well as of warnings and checks, so that one thing has one
// name; packages that warn or answer have codes and numbers.
package caveat

import (
	"cmp"
	"fmt"
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
func SeverityOf(w router.Warning) Severity {
	weight, _ := entry(w.Key())
	return weight
}

// Group identifies the caveat that a warning belongs to, by its key and its lists of numbers, such as the
// steps of one arm.
func Group(w router.Warning) string {
	lists := router.Args{}
	for name, v := range w.Args {
		if _, numbers := split(v); len(numbers) > 0 && numbers[0] != v { // a number alone is no list
			lists[name] = v
		}
	}
	return w.Key() + fmt.Sprint(lists)
}

// Say words a row of answers; empty where some of its values are not known.
func Say(key string, values router.Args) string { return whollyFilled(sentences[key], values) }

// Step words what to do next, and its command, and reports whether all values of both are known. What bench fills
// in stands in ‹angle quotes›: {concurrency}.
func Step(key string, values router.Args) (text, command string, whole bool) {
	row, there := readAnswers().Steps[key]
	text, one := Fill(row[0], values)
	command, other := Fill(row[1], values)
	if command = strings.NewReplacer("‹", "{", "›", "}").Replace(command); command != "" && command[0] >= 'a' {
		command = "moebalance " + command
	}
	return text, command, there && one && other
}

// Known reports a warning that the catalog has words for.
func Known(w router.Warning) bool { return words(w.Key()) != "" && (w.Args != nil || w.Text == "") }

// Text words a warning. A warning that the catalog lacks brings its own words, or is told by its name: out_of_range →
// "out of range".
func Text(w router.Warning) string {
	text, whole := Fill(words(w.Key()), w.Args)
	switch why, _ := w.Args["why"].(string); {
	case Known(w) && (whole || w.Text == ""):
		return text
	default:
		name := strings.ReplaceAll(w.Code+": "+cmp.Or(unchecked[why], why), "_", " ")
		return cmp.Or(w.Text, strings.TrimSuffix(name, ": "))
	}
}
