package caveat

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

var (
	placeholder = regexp.MustCompile(`\{(\w+)(?::([^}|]*))?(?:\|([^}]*))?\}`)
	optional    = regexp.MustCompile(`\[([^]]*)\]`)
)

// Fill puts values into a text, and reports whether all that it needs are known. {name} is a value and
// {name:format} one in a format: see formats, #noun (numbers of things: rank 3), is noun (3 layers are), a noun that
// is counted, ; (words between these), or words (the entry of this key, with the same values). {name|NAME} is NAME
// where the value is not known, and what stands in [brackets] is left out there: "[ on {arm}]" without an arm is
// nothing.
func Fill(text string, values router.Args) (filled string, whole bool) {
	text = optional.ReplaceAllStringFunc(text, func(part string) string {
		if lacks(part, values) {
			return ""
		}
		return part[1 : len(part)-1]
	})
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		parts := placeholder.FindStringSubmatch(p)
		switch v, format := values[parts[1]], parts[2]; {
		case !has(v) && parts[3] != "":
			return parts[3]
		case format == "words":
			text, _ := Fill(words(v.(string)), values)
			return text
		default:
			return write(v, format)
		}
	}), !lacks(text, values)
}

// lacks reports a text with a value that is not known.
func lacks(text string, values router.Args) bool {
	return slices.ContainsFunc(placeholder.FindAllStringSubmatch(text, -1), func(p []string) bool {
		return !has(values[p[1]]) && p[3] == ""
	})
}

// split are the words and the numbers of a value: one, or a list.
func split(v any) (words []string, numbers []float64) {
	list, several := v.([]any)
	if !several {
		list = []any{v}
	}
	for _, v := range list {
		switch v := v.(type) {
		case string:
			words = append(words, v)
		case float64:
			numbers = append(numbers, v)
		}
	}
	return words, numbers
}

// has reports a value that is known.
func has(v any) bool {
	words, numbers := split(v)
	return len(numbers) > 0 || strings.Join(words, "") != ""
}

// write is a value in a format; of several in a unit, the least and the most.
func write(v any, format string) string {
	words, numbers := split(v)
	switch {
	case len(words) > 0:
		return some(words, format == ";", 3)
	case len(numbers) == 0:
		return quantity.Unknown
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	if noun, numbered := strings.CutPrefix(format, "#"); numbered || format == "" && len(numbers) > 1 {
		whole := make([]int, len(numbers))
		for i, x := range numbers {
			whole[i] = int(x)
		}
		text := quantity.Ranges(whole)
		if numbered {
			text = quantity.Numbered(noun, whole)
		}
		return some(strings.Split(text, ", "), false, 8)
	}
	least, most := one(numbers[0], format), one(numbers[len(numbers)-1], format)
	if least == most {
		return most
	}
	return least + " to " + most
}

// formats write one number.
var formats = map[string]func(float64) string{"": quantity.Plain[float64], "n": quantity.Plain[float64],
	"ns": quantity.Duration[float64], "%": quantity.Percent[float64], "+%": quantity.Change[float64],
	"0%": quantity.Confidence[float64], // of no more decimals than it has
	"3":  quantity.Digits3[float64], "~": quantity.Digits4[float64],
	".0": decimals(0), ".1": decimals(1), ".2": decimals(2), ".3": decimals(3),
	"+ns": func(v float64) string { return map[bool]string{true: "+"}[v > 0] + quantity.Duration(v) },
	"speed": func(v float64) string {
		return quantity.Percent(max(v, -v)) + map[bool]string{true: " faster", false: " slower"}[v >= 0]
	}}

func decimals(n int) func(float64) string {
	return func(v float64) string { return quantity.Decimals(v, n) }
}

func one(v float64, format string) string {
	if write, ok := formats[format]; ok {
		return write(v)
	}
	noun, verb := strings.CutPrefix(format, "is ")
	text := quantity.Count(int64(v), noun)
	if verb {
		text += map[bool]string{true: " is", false: " are"}[v == 1]
	}
	return text
}

// some are the first words of a list, and how many more there are: a, b, c and 2 more.
func some(words []string, sentences bool, most int) string {
	between := map[bool]string{true: "; ", false: ", "}[sentences]
	if more := len(words) - most; more > 0 {
		return strings.Join(words[:most], between) + " and " + quantity.Plain(float64(more)) + " more"
	}
	return strings.Join(words, between)
}

// words are the words of a key: of its case, or else of its code. What the reader of counts says beside a trace has
// a prefix.
func words(key string) string {
	code, _, _ := strings.Cut(key, ".")
	return cmp.Or(catalog[key], catalog[strings.TrimPrefix(key, "counts_")], catalog[code],
		catalog[strings.TrimPrefix(code, "counts_")])
}
