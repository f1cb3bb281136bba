package plots

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Unit is what a number is counted in: the name people read and the number of
// raw units it holds.
type Unit struct {
	Name string  // "µs", "slots"
	Per  float64 // raw units per one of these, > 0
}

// TimeUnit is the unit in which the largest of some durations in nanoseconds
// has one to three digits before the point, if it is at least 1 ns and below
// 1000 s.
func TimeUnit(mostNS float64) Unit {
	switch {
	case mostNS >= 1e9:
		return Unit{"s", 1e9}
	case mostNS >= 1e6:
		return Unit{"ms", 1e6}
	case mostNS >= 1e3:
		return Unit{"µs", 1e3}
	}
	return Unit{"ns", 1}
}

// Duration writes a time in nanoseconds with three significant digits and its
// unit, and "–" for an undefined one.
func Duration(ns float64) string {
	if !known(ns) {
		return missing
	}
	u := TimeUnit(math.Abs(ns))
	return digits3(ns/u.Per) + nbsp + u.Name
}

// Percent writes a fraction as a percentage with one decimal, 0.1234 as
// "12.3 %", and "–" for an undefined one.
func Percent(v float64) string { return percentage("%.1f", v) }

// Change writes a fraction as Percent does, always with its sign.
func Change(v float64) string { return percentage("%+.1f", v) }

func percentage(format string, v float64) string {
	if !known(v) {
		return missing
	}
	return minus(fmt.Sprintf(format, math.Round(1000*v)/10+0)) + nbsp + "%" // + 0 turns −0 into 0
}

// missing stands for what is undefined.
const missing = "–"

// minus writes a number's leading hyphen as the minus sign it stands for.
func minus(number string) string {
	if rest, negative := strings.CutPrefix(number, "-"); negative {
		return "−" + rest
	}
	return number
}

// nbsp keeps a number and its unit on one line.
const nbsp = "\u00a0"

// digits3 writes three significant digits without an exponent.
func digits3(v float64) string {
	a := math.Abs(v)
	decimals := 0
	switch {
	case a == 0 || a >= 100:
	case a >= 10:
		decimals = 1
	default:
		decimals = 2
	}
	return minus(strconv.FormatFloat(v, 'f', decimals, 64))
}

// amount writes a count in full, and a mean of counts with three significant
// digits.
func amount(v float64) string {
	if v == math.Trunc(v) {
		return minus(strconv.FormatFloat(v, 'f', 0, 64))
	}
	return digits3(v)
}

// largest is the largest finite value of all lists, and 0 without one.
func largest(lists ...[]float64) float64 {
	most := 0.0
	for _, l := range lists {
		for _, v := range l {
			if known(v) && v > most {
				most = v
			}
		}
	}
	return most
}

// nan is the unknown value.
var nan = math.NaN()

// drawable reports a finite value that is not negative. Results read from files
// can hold anything; what is below zero is no time and no load, and is not drawn.
func drawable(v float64) bool { return known(v) && v >= 0 }

// isEven reports that the largest of some values, over their mean, is 1 give or
// take rounding, which makes all of them equal.
func isEven(maxOverMean float64) bool { return maxOverMean <= 1+1e-9 }

// known reports a finite value.
func known(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// meanKnown is the mean of the finite values, NaN without one.
func meanKnown(values []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if known(v) {
			sum += v
			n++
		}
	}
	return sum / float64(n)
}

// countKnown is the number of finite values.
func countKnown(values []float64) (n int) {
	for _, v := range values {
		if known(v) {
			n++
		}
	}
	return n
}

// addKnown adds to a sum that may still be unknown.
func addKnown(sum *float64, v float64) {
	if !known(*sum) {
		*sum = 0
	}
	*sum += v
}
