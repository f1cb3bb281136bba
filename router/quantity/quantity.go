// Package quantity writes quantities for people: one precision, one minus sign,
// one way to say that a value is unknown. Tables, sentences, figures and the page
// take their numbers from here, so that the same value reads the same everywhere.
//
// What programs read (JSON, CSV) never passes through it.
package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Unknown stands for a value that is undefined or was not recorded.
const Unknown = "–"

// Known reports a finite value.
func Known[F ~float64](v F) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// Decimals writes a number with a fixed number of decimals and a true minus sign:
// −1.50. It writes Unknown for a value that is not finite, and never −0.
func Decimals[F ~float64](v F, decimals int) string {
	if !Known(v) {
		return Unknown
	}
	text := strconv.FormatFloat(float64(v), 'f', decimals, 64)
	rest, negative := strings.CutPrefix(text, "-")
	switch {
	case !negative:
		return text
	case strings.Trim(rest, "0.") == "":
		return rest
	}
	return "−" + rest
}

// Digits3 writes three significant digits without an exponent: 0.123, 1.23, 12.3,
// 123, 1234.
func Digits3[F ~float64](v F) string {
	switch a := math.Abs(float64(v)); {
	case a >= 100 || a == 0:
		return Decimals(v, 0)
	case a >= 10:
		return Decimals(v, 1)
	case a >= 1:
		return Decimals(v, 2)
	}
	return Decimals(v, 3)
}

// Digits4 writes a number of no fixed unit with four significant digits; below 10⁹
// all digits before the point are kept, from there on an exponent is used.
func Digits4[F ~float64](v F) string {
	a := math.Abs(float64(v))
	if a >= 1e4 && a < 1e9 || !Known(v) {
		return Decimals(v, 0)
	}
	return minus(strconv.FormatFloat(float64(v), 'g', 4, 64))
}

// Plain writes a number with as many digits as it needs: 12, 0.5.
func Plain[F ~float64](v F) string {
	if !Known(v) {
		return Unknown
	}
	return minus(strconv.FormatFloat(float64(v), 'f', -1, 64))
}

func minus(text string) string { return strings.ReplaceAll(text, "-", "−") }

// Ratio writes a dimensionless ratio with three decimals, and from 1,000 on with none: 1.234.
func Ratio[F ~float64](v F) string {
	if math.Abs(float64(v)) >= 1000 {
		return Decimals(v, 0)
	}
	return Decimals(v, 3)
}

// Percent writes a fraction as a percentage with one decimal: 0.1234 is "12.3 %".
func Percent[F ~float64](v F) string { return percent(v, false) }

// Change writes a fraction as Percent does, always with its sign: "+12.3 %".
func Change[F ~float64](v F) string { return percent(v, true) }

func percent[F ~float64](v F, signed bool) string {
	text := Decimals(100*v, 1)
	switch {
	case text == Unknown:
		return Unknown
	case signed && !strings.HasPrefix(text, "−"):
		text = "+" + text
	}
	return text + " %"
}

// Confidence writes a confidence below 1, a whole one without decimals, and with as many as
// keep it from reading 100 %: 0.95 is "95 %", 0.999999 is "99.9999 %".
func Confidence[F ~float64](v F) string {
	decimals := 1
	for decimals < 9 && v < 1 && Decimals(100*v, decimals) == Decimals(100.0, decimals) {
		decimals++
	}
	if !Known(v) {
		return Unknown
	}
	return strings.TrimSuffix(Decimals(100*v, decimals), ".0") + " %"
}

// Unit is what a number is shown in: its name and how many raw units (ns, bytes)
// one of it holds.
type Unit struct {
	Name string
	Per  float64
}

var (
	times = []Unit{{"s", 1e9}, {"ms", 1e6}, {"µs", 1e3}, {"ns", 1}}
	sizes = []Unit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}
)

// TimeUnit is the unit for durations in nanoseconds up to most: the largest unit that most
// fills at least once, ms for 2,500,000. Values that are compared share
// a unit.
func TimeUnit[F ~float64](most F) Unit { return fitting(times, float64(most)) }

// SizeUnit is TimeUnit for bytes.
func SizeUnit[F ~float64](most F) Unit { return fitting(sizes, float64(most)) }

func fitting(units []Unit, most float64) Unit {
	for _, u := range units {
		if math.Abs(most) >= u.Per {
			return u
		}
	}
	return units[len(units)-1]
}

// Duration writes nanoseconds with three significant digits in the unit that
// fits: "1.23 ms".
func Duration[F ~float64](ns F) string { return in(float64(ns), TimeUnit(ns)) }

// Bytes writes a size with three significant digits in the unit that fits: "8.31 KiB".
func Bytes[F ~float64](bytes F) string { return in(float64(bytes), SizeUnit(bytes)) }

func in(v float64, u Unit) string {
	if !Known(v) {
		return Unknown
	}
	return Digits3(v/u.Per) + " " + u.Name
}

// Count writes n of something: 1 layer, 2 layers, 0 entries. The noun is English
// and forms its plural by rule.
func Count[N ~int | ~int32 | ~int64](n N, noun string) string {
	text := strconv.FormatInt(int64(n), 10)
	if n == 1 {
		return text + " " + noun
	}
	return text + " " + plural(noun)
}

func plural(noun string) string {
	for _, suffix := range []string{"s", "x", "ch", "sh"} {
		if strings.HasSuffix(noun, suffix) {
			return noun + "es"
		}
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok && !strings.ContainsAny(stem[max(0, len(stem)-1):], "aeiou") {
		return stem + "ies"
	}
	return noun + "s"
}

// Numbered names what has ascending numbers: launch 3, launches 3, 7.
func Numbered[N ~int | ~int32](noun string, numbers []N) string {
	if len(numbers) != 1 {
		noun = plural(noun)
	}
	return noun + " " + Ranges(numbers)
}

// Ranges writes ascending numbers, three or more in a row by their ends: "0, 3 to 60".
// It writes "none" for no number.
func Ranges[N ~int | ~int32](numbers []N) string {
	var out []string
	for from := 0; from < len(numbers); {
		to := from
		for to+1 < len(numbers) && numbers[to+1] == numbers[to]+1 {
			to++
		}
		if to < from+2 {
			to = from
			out = append(out, strconv.Itoa(int(numbers[from])))
		} else {
			out = append(out, fmt.Sprintf("%d to %d", numbers[from], numbers[to]))
		}
		from = to + 1
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}
