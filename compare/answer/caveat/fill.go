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

var (
	placeholder = regexp.MustCompile(`\{(\w+)(?::([^}|]*))?(?:\|([^}]*))?\}`)
	optional    = regexp.MustCompile(`\[([^]]*)\]`)
)

// Fill puts values into a text, and reports whether all that it needs are known. {name} is a value and
// {name:format} one in a format: ns, +ns (a change), %, 0% (a limit, of no more decimals than it has), +% (a change), speed
// (2 % faster), p (of a test), ~ (four digits), .2 (decimals), n (a number of things), is (3 layers are), #noun
// (numbers of things, as rank 3), ; (words between these), words (of the entry of this key, with the same
// values) or a noun that is counted. {name|NAME} is NAME where the value is not known, and what stands in
// [brackets] is left out there: "[ on {arm}]" without an arm is nothing.
func Fill(text string, values router.Args) (filled string, whole bool) {
	text = optional.ReplaceAllStringFunc(text, func(part string) string {
		if lacks(part, values) {
			return ""
		}
		return part[1 : len(part)-1]
	})
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		parts := placeholder.FindStringSubmatch(p)
		v, format := values[parts[1]], parts[2]
		if key, ok := v.(string); ok && format == "words" {
			code, _, _ := strings.Cut(key, ".")
			if e := cmp.Or(catalog[key], catalog[code]); e.text != "" {
				text, _ := Fill(e.text, values)
				return text
			}
		}
		if !has(v) && parts[3] != "" {
			return parts[3]
		}
		return write(v, format)
	}), !lacks(text, values)
}

// lacks reports a text with a value that is not known.
func lacks(text string, values router.Args) bool {
	return slices.ContainsFunc(placeholder.FindAllStringSubmatch(text, -1), func(p []string) bool {
		return !has(values[p[1]]) && p[3] == "" && p[2] != "words"
	})
}

// has reports a value that is known: a number, or words, or some of either.
func has(v any) bool {
	words, numbers := of[string](list(v)), of[float64](list(v))
	return len(numbers) > 0 || strings.Join(words, "") != ""
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
	case format == "+ns" && v > 0:
		return "+" + quantity.Duration(v)
	case format == "ns" || format == "+ns":
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
