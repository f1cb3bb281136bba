// Package caveat words the warnings of results: a code with values in, a sentence out. The
// catalog is the one place that has their words; who warns has codes and numbers.
package caveat

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
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

// entry words a code. In its text, {name} is a value and {name:format} one in a format:
// ns, %, 0% (a limit, of no more decimals than it has), +% (a change), p (of a test), ~ (four digits),
// .2 (decimals), n (a number of things), #noun (numbers of things, as rank 3), ; (words between
// these), words (of the entry of this key, with the same values) or a noun that is counted.
type entry struct {
	severity Severity
	text     string
	brief    string // in few words; why a trace decides nothing, where that is why
}

// Group is what warnings that make one caveat have in common: their key, and lists of
// numbers, as those of the steps of one arm.
func Group(w router.Warning) string {
	lists := router.Args{}
	for name, v := range w.Args {
		if numbers, ok := v.([]any); ok && len(of[float64](numbers)) > 0 {
			lists[name] = v
		}
	}
	return w.Key() + fmt.Sprint(lists)
}

// find is the entry of a warning. What the reader of counts says beside a trace has a prefix.
func find(w router.Warning) (entry, bool) {
	key := w.Key()
	e, ok := catalog[key]
	if !ok {
		e, ok = catalog[strings.TrimPrefix(key, "counts_")]
	}
	if !ok && key != w.Code { // under the code alone is the label
		e.text, ok = checks[key]
	}
	return e, ok && (w.Args != nil || w.Text == "")
}

// SeverityOf is how much a warning weighs.
func SeverityOf(w router.Warning) Severity {
	e, _ := find(w)
	return cmp.Or(e.severity, Note)
}

// Text words a warning; one that the catalog lacks brings its own words.
func Text(w router.Warning) string {
	if e, ok := find(w); ok {
		return fill(e.text, w.Args)
	}
	return cmp.Or(w.Text, w.Code)
}

// Brief says in few words why a trace with this doubt decides nothing.
func Brief(w router.Warning) string {
	e, _ := find(w)
	return cmp.Or(fill(e.brief, w.Args), "the capture leaves imbalance over ranks unknown")
}

// Label says in a few words what a warning is about.
func Label(w router.Warning) string {
	e, _ := find(w)
	return cmp.Or(fill(e.brief, w.Args), checks[w.Code], strings.ReplaceAll(w.Code, "_", " "))
}

var placeholder = regexp.MustCompile(`\{(\w+)(?::([^}]*))?\}`)

func fill(text string, args router.Args) string {
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		parts := placeholder.FindStringSubmatch(p)
		if key, ok := args[parts[1]].(string); ok && parts[2] == "words" && catalog[key].text != "" {
			return fill(catalog[key].text, args)
		}
		return write(args[parts[1]], parts[2])
	})
}

// write is a value in a format; of several in a unit, the least and the most.
func write(v any, format string) string {
	words, numbers := of[string](list(v)), of[float64](list(v))
	switch {
	case len(words) > 0 && format == ";":
		return some(words, "; ")
	case len(words) > 0:
		return some(words, ", ")
	case len(numbers) == 0:
		return quantity.Unknown
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	noun, numbered := strings.CutPrefix(format, "#")
	switch {
	case numbered:
		return short(quantity.Numbered(noun, whole(numbers)))
	case format == "" && len(numbers) > 1:
		return short(quantity.Ranges(whole(numbers)))
	}
	least, most := one(numbers[0], format), one(numbers[len(numbers)-1], format)
	if least == most {
		return most
	}
	return least + " to " + most
}

func one(v float64, format string) string {
	switch decimals, fixed := strings.CutPrefix(format, "."); {
	case fixed:
		n, _ := strconv.Atoi(decimals)
		return quantity.Decimals(v, n)
	case format == "" || format == "n":
		return quantity.Plain(v)
	case format == "ns":
		return quantity.Duration(v)
	case format == "%":
		return quantity.Percent(v)
	case format == "0%":
		return quantity.Confidence(v)
	case format == "+%":
		return quantity.Change(v)
	case format == "~":
		return quantity.Digits4(v)
	case format == "p":
		return fmt.Sprintf("%.2g", v)
	}
	return quantity.Count(int64(v), format)
}

// some are the first words, and how many more there are.
func some(words []string, between string) string {
	const most = 3
	if more := len(words) - most; more > 0 {
		return strings.Join(words[:most], between) + " and " + strconv.Itoa(more) + " more"
	}
	return strings.Join(words, between)
}

// short cuts a long list of numbers: 0, 2, 4, …
func short(ranges string) string {
	const most = 8
	if parts := strings.SplitN(ranges, ", ", most+1); len(parts) > most {
		parts[most] = "…"
		return strings.Join(parts, ", ")
	}
	return ranges
}

// list is a value as a list, which it may be.
func list(v any) []any {
	if l, ok := v.([]any); ok {
		return l
	}
	return []any{v}
}

// of are the values of a list that are of one type.
func of[T any](list []any) (out []T) {
	for _, v := range list {
		if v, ok := v.(T); ok {
			out = append(out, v)
		}
	}
	return out
}

func whole(numbers []float64) []int {
	out := make([]int, len(numbers))
	for i, v := range numbers {
		out[i] = int(v)
	}
	return out
}

// Join makes one warning of two of the same key: what is counted is added up, and other
// values that differ are listed.
func Join(w, o router.Warning) router.Warning {
	e, _ := find(w)
	joined := router.Args{}
	for name, v := range w.Args {
		joined[name] = union(v, o.Args[name])
	}
	for _, p := range placeholder.FindAllStringSubmatch(e.text, -1) {
		name, format := p[1], p[2]
		a, first := w.Args[name].(float64)
		b, second := o.Args[name].(float64)
		if first && second && !slices.Contains([]string{"", "ns", "p"}, format) && !strings.ContainsAny(format, "#.%~") {
			joined[name] = a + b
		}
	}
	w.Args = joined
	return w
}

// union lists the values of both, each once.
func union(v, o any) any {
	all := slices.Clone(list(v))
	for _, more := range list(o) {
		if !slices.Contains(all, more) {
			all = append(all, more)
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return all
}
