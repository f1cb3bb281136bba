package caveat

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// token is a part of a text that stands for something: [what may be left out] or {name:format|default}.
var token = regexp.MustCompile(`\[([^]]*)\]|\{([=?]?[\w.]+)(?::([^}|]*))?(?:\|([^}]*))?\}`)

// Fill puts values into a text, and reports whether all that it needs are known. Of alternatives with " | " between
// them it fills the first whose values all are. {name} is a value, {=name} another row, {?name} a value that must be
// known and is not written, and {name:format} a value in a format: see formats, #noun (numbers of things: rank 3), is
// noun (3 layers are), a noun that is counted, ; (words between these), or words (the entry of this key, with the same
// values). {name|NAME} is NAME where the value is not known, and what stands in [brackets] is left out there:
// "[ on {arm}]" without an arm is nothing.
func Fill(text string, values router.Args) (filled string, whole bool) {
	for alternative := range strings.SplitSeq(text, " | ") {
		whole = true
		filled = token.ReplaceAllStringFunc(alternative, func(part string) string {
			m := token.FindStringSubmatch(part)
			if m[2] == "" {
				return whollyFilled(m[1], values)
			}
			v := values[m[2]]
			switch name := m[2][1:]; m[2][0] {
			case '?':
				whole = whole && has(values[name])
				return ""
			case '=':
				v = Say(name, values)
			}
			if !has(v) {
				v = m[4]
			} else if m[3] == "words" {
				v, _ = Fill(words(fmt.Sprint(v)), values)
			}
			whole = whole && has(v)
			return write(v, m[3])
		})
		if whole {
			break
		}
	}
	return filled, whole
}

// whollyFilled is a text with its values, empty where one is not known.
func whollyFilled(text string, values router.Args) string {
	if filled, whole := Fill(text, values); whole {
		return filled
	}
	return ""
}

// split are the words and the numbers of a value: one, or a list.
func split(v any) (words []string, numbers []float64) {
	list, several := v.([]any)
	if !several {
		list = []any{v}
	}
	for _, v := range list {
		if word, ok := v.(string); ok && word != "" {
			words = append(words, word)
		} else if number, ok := v.(float64); ok {
			numbers = append(numbers, number)
		}
	}
	return words, numbers
}

// has reports a value that is known.
func has(v any) bool {
	words, numbers := split(v)
	return len(words)+len(numbers) > 0
}

// write is a value in a format; of several in a unit, the least and the most.
func write(v any, format string) string {
	words, numbers := split(v)
	switch {
	case len(words) > 0 && format == ";":
		return Some(words, "; ", 2)
	case len(words) > 0:
		return Some(words, ", ", 3)
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
		return Some(strings.Split(text, ", "), ", ", 8)
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
	"3":  quantity.Digits3[float64],
	"+ns": func(v float64) string {
		if v > 0 {
			return "+" + quantity.Duration(v)
		}
		return quantity.Duration(v)
	},
	"speed": func(v float64) string {
		if v < 0 {
			return quantity.Percent(-v) + " slower"
		}
		return quantity.Percent(v) + " faster"
	}}

func one(v float64, format string) string {
	if write, ok := formats[format]; ok {
		return write(v)
	} else if format[0] == '.' {
		return quantity.Decimals(v, int(format[1]-'0'))
	}
	noun, verb := strings.CutPrefix(format, "is ")
	text := quantity.Count(int64(v), noun)
	switch {
	case verb && v == 1:
		return text + " is"
	case verb:
		return text + " are"
	}
	return text
}

// Some are the first words of a list, and how many more there are: a, b, c and 2 more.
func Some(words []string, between string, most int) string {
	if more := len(words) - most; more > 0 {
		return strings.Join(words[:most], between) + " and " + quantity.Plain(float64(more)) + " more"
	}
	return strings.Join(words, between)
}

// words are the words of a key.
func words(key string) string {
	_, text := entry(key)
	return text
}

// entry is how much a key weighs and its words: of its case, or else of its code. What the reader of counts says
// beside a trace has a prefix.
func entry(key string) (Severity, string) {
	code, _, _ := strings.Cut(key, ".")
	text := cmp.Or(catalog[key], catalog[strings.TrimPrefix(key, "counts_")], catalog[code],
		catalog[strings.TrimPrefix(code, "counts_")])
	for _, s := range Severities {
		if words, found := strings.CutPrefix(text, string(s)+": "); found {
			return s, words
		}
	}
	return Note, text
}
