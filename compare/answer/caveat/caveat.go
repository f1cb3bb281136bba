// Package caveat words what results say: a key with values in, a sentence out. It is the one
// place that has the words of answers, warnings and checks, so that one thing has one name;
// who warns or answers has keys and numbers.
package caveat

import (
	"cmp"
	"fmt"
	"maps"
	"math"
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

// entry words a key. In its text, {name} is a value and {name:format} one in a format:
// ns, %, 0% (a limit, of no more decimals than it has), +% (a change), speed (2 % faster),
// p (of a test), ~ (four digits), .2 (decimals), n (a number of things), is (3 layers are),
// #noun (numbers of things, as rank 3), ; (words between these), words (of the entry of this
// key, with the same values) or a noun that is counted. What stands in [brackets] is left out
// where one of its values is missing: "[ on {arm}]" without an arm is nothing.
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
			if e.text = cmp.Or(checks[key], older[key]); e.text != "" {
				return e, true
			}
		}
	}
	return entry{}, false
}

// Say words a key of the lines of answers. args are names and values in turn.
func Say(key string, args ...any) string { return fill(lines[key], router.Warn(key, "", args...).Args) }

// Step words what to do next, and its command.
func Step(key string, args ...any) (text, command string) {
	values := router.Warn(key, "", args...).Args
	return fill(steps[key][0], values), fill(steps[key][1], values)
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
	e, ok := find(w)
	if ok && complete(e.text, w.Args) {
		return fill(e.text, w.Args)
	}
	var values []string
	for _, name := range slices.Sorted(maps.Keys(w.Args)) {
		if name != "why" && complete("{"+name+"}", w.Args) {
			format := ""
			if v, ok := w.Args[name].(float64); ok && v != math.Trunc(v) {
				format = "~"
			}
			values = append(values, strings.ReplaceAll(name, "_", " ")+" "+write(w.Args[name], format))
		}
	}
	name := strings.ReplaceAll(w.Code, "_", " ")
	if why, ok := w.Args["why"].(string); ok {
		name += ": " + cmp.Or(unchecked[why], strings.ReplaceAll(why, "_", " "))
	}
	if len(values) > 0 {
		name += " (" + strings.Join(values, ", ") + ")"
	}
	return cmp.Or(w.Text, name)
}

// Brief says in few words why a trace with this doubt decides nothing.
func Brief(w router.Warning) string {
	why, _ := w.Args["why"].(string)
	return cmp.Or(fill(undecided[w.Code+"."+why], w.Args), fill(undecided[w.Code], w.Args),
		"the capture leaves imbalance over ranks unknown")
}

var (
	placeholder = regexp.MustCompile(`\{(\w+)(?::([^}]*))?\}`)
	optional    = regexp.MustCompile(`\[([^]]*)\]`)
)

// complete reports whether a text has all its values, but for those in brackets.
func complete(text string, args router.Args) bool {
	for _, p := range placeholder.FindAllStringSubmatch(optional.ReplaceAllString(text, ""), -1) {
		v := list(args[p[1]])
		if p[2] != "words" && len(of[float64](v)) == 0 && strings.Join(of[string](v), "") == "" {
			return false
		}
	}
	return true
}

func fill(text string, args router.Args) string {
	text = optional.ReplaceAllStringFunc(text, func(part string) string {
		for _, p := range placeholder.FindAllStringSubmatch(part, -1) {
			if v, ok := args[p[1]]; !ok || v == "" || v == nil || len(list(v)) == 0 {
				return ""
			}
		}
		return part[1 : len(part)-1]
	})
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		parts := placeholder.FindStringSubmatch(p)
		if key, ok := args[parts[1]].(string); ok && parts[2] == "words" {
			code, _, _ := strings.Cut(key, ".")
			if text := cmp.Or(catalog[key].text, catalog[code].text); text != "" {
				return fill(text, args)
			}
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
	case strings.HasPrefix(format, "is "):
		return quantity.Count(int64(v), format[3:]) + map[bool]string{true: " is", false: " are"}[v == 1]
	case format == "speed" && v < 0:
		return quantity.Percent(-v) + " slower"
	case format == "speed":
		return quantity.Percent(v) + " faster"
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
