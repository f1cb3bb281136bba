package plots

import (
	"math"
	"strconv"
)

// Unit is what a number is counted in: the name people read and the number of
// raw units it holds.
type Unit struct {
	Name string  // "µs", "slots"
	Per  float64 // raw units per one of these, > 0
}

// TimeUnit is the unit in which the largest of some durations in nanoseconds
// has at most four digits before the point.
func TimeUnit(mostNS float64) Unit {
	switch {
	case mostNS >= 1e10:
		return Unit{"s", 1e9}
	case mostNS >= 1e7:
		return Unit{"ms", 1e6}
	case mostNS >= 1e4:
		return Unit{"µs", 1e3}
	}
	return Unit{"ns", 1}
}

// Duration writes a time in nanoseconds with three significant digits and its
// unit, and "–" for an undefined one.
func Duration(ns float64) string {
	if math.IsNaN(ns) || math.IsInf(ns, 0) {
		return "–"
	}
	u := TimeUnit(math.Abs(ns) * 10) // two or three digits before the point, not five
	return digits3(ns/u.Per) + nbsp + u.Name
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
	return strconv.FormatFloat(v, 'f', decimals, 64)
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

// addKnown adds to a sum that may still be unknown.
func addKnown(sum *float64, v float64) {
	if !known(*sum) {
		*sum = 0
	}
	*sum += v
}
