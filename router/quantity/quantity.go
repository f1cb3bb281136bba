// Package quantity writes quantities for people: one precision, one minus sign,
// one way to say that a value is unknown. Tables, sentences, figures and the page
// take their numbers from here, so that the same value reads the same everywhere.
//
// What programs read (JSON, CSV) never passes through it.
package quantity

import (
	"cmp"
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
func Decimals[F ~float64](v F, decimals int) string { return written(float64(v), 'f', decimals) }

func written(v float64, format byte, digits int) string {
	text := strconv.FormatFloat(v, format, digits, 64)
	if !Known(v) {
		return Unknown
	}
	if strings.Trim(text, "-0.") == "" {
		text = strings.TrimPrefix(text, "-")
	}
	return strings.ReplaceAll(text, "-", "−")
}

// in is a number with its unit, Unknown without.
func in(number, unit string) string {
	if number == Unknown {
		return Unknown
	}
	return number + " " + unit
}

// Digits3 writes three significant digits without an exponent, and at most three decimals: 0.123, 1.23, 12.3, 123,
// 1234.
func Digits3[F ~float64](v F) string {
	if v == 0 || !Known(v) {
		return Decimals(v, 0)
	}
	return Decimals(v, min(max(2-int(math.Floor(math.Log10(math.Abs(float64(v))))), 0), 3))
}

// Digits4 writes a number of no fixed unit with four significant digits; below 10⁹
// all digits before the point are kept, from there on an exponent is used.
func Digits4[F ~float64](v F) string {
	if a := math.Abs(float64(v)); a >= 1e4 && a < 1e9 {
		return Decimals(v, 0)
	}
	return written(float64(v), 'g', 4)
}

// Plain writes a number with as many digits as it needs: 12, 0.5.
func Plain[F ~float64](v F) string { return Decimals(v, -1) }

// Ratio writes a dimensionless ratio with three decimals, and from 1,000 on with none: 1.234.
func Ratio[F ~float64](v F) string {
	if math.Abs(float64(v)) >= 1000 {
		return Decimals(v, 0)
	}
	return Decimals(v, 3)
}

// Percent writes a fraction as a percentage with one decimal: 0.1234 is "12.3 %".
func Percent[F ~float64](v F) string { return in(Decimals(100*v, 1), "%") }

// Change writes a fraction as Percent does, always with its sign: "+12.3 %".
func Change[F ~float64](v F) string {
	text := Percent(v)
	if text == Unknown || strings.HasPrefix(text, "−") {
		return text
	}
	return "+" + text
}

// Confidence writes a confidence below 1, a whole one without decimals, and with as many as
// keep it from reading 100 %: 0.95 is "95 %", 0.999999 is "99.9999 %".
func Confidence[F ~float64](v F) string {
	decimals := 1
	for decimals < 9 && v < 1 && Decimals(100*v, decimals) == Decimals(100.0, decimals) {
		decimals++
	}
	return in(strings.TrimSuffix(Decimals(100*v, decimals), ".0"), "%")
}

// Unit is what a number is shown in: its name and how many raw units (ns, bytes)
// one of it holds.
type Unit struct {
	Name string
	Per  float64
}

// TimeUnit is the unit for durations in nanoseconds up to most: the largest unit that most
// fills at least once, ms for 2,500,000. Values that are compared share
// a unit.
func TimeUnit[F ~float64](most F) Unit {
	return fitting(float64(most), Unit{"s", 1e9}, Unit{"ms", 1e6}, Unit{"µs", 1e3}, Unit{"ns", 1})
}

// SizeUnit is TimeUnit for bytes.
func SizeUnit[F ~float64](most F) Unit {
	return fitting(float64(most), Unit{"GiB", 1 << 30}, Unit{"MiB", 1 << 20}, Unit{"KiB", 1 << 10}, Unit{"B", 1})
}

func fitting(most float64, units ...Unit) Unit {
	for len(units) > 1 && !(math.Abs(most) >= units[0].Per) {
		units = units[1:]
	}
	return units[0]
}

// Duration writes nanoseconds with three significant digits in the unit that
// fits: "1.23 ms".
func Duration[F ~float64](ns F) string {
	u := TimeUnit(ns)
	return in(Digits3(float64(ns)/u.Per), u.Name)
}

// Bytes writes a size with three significant digits in the unit that fits: "8.31 KiB".
func Bytes[F ~float64](bytes F) string {
	u := SizeUnit(bytes)
	return in(Digits3(float64(bytes)/u.Per), u.Name)
}

// Count writes n of something: 1 layer, 2 layers, 0 entries. The noun is English
// and forms its plural by rule.
func Count[N ~int | ~int32 | ~int64](n N, noun string) string {
	if n != 1 {
		noun = plural(noun)
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func plural(noun string) string {
	stem, consonantY := strings.CutSuffix(noun, "y")
	switch {
	case consonantY && !strings.ContainsAny(stem[len(stem)-1:], "aeiou"):
		return stem + "ies"
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "ch"):
		return noun + "es"
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
	var parts []string
	for len(numbers) > 0 {
		n := 1
		for n < len(numbers) && numbers[n] == numbers[n-1]+1 {
			n++
		}
		part := fmt.Sprint(numbers[0])
		if n > 2 {
			part = fmt.Sprintf("%s to %d", part, numbers[n-1])
		} else {
			n = 1
		}
		numbers, parts = numbers[n:], append(parts, part)
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}
