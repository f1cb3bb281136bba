package plots

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/router/quantity"
)

// nan is the unknown value.
var nan = math.NaN()

func known(v float64) bool { return quantity.Known(v) }

// drawable reports a finite value that is not negative. Results read from files
// can hold anything; what is below zero is no time and no load, and is not drawn.
func drawable(v float64) bool { return known(v) && v >= 0 }

// isEven reports that the largest of some values, over their mean, is 1 give or
// take rounding, which makes all of them equal.
func isEven(maxOverMean float64) bool { return maxOverMean <= 1+1e-9 }

func unknowns(n int) []float64 { return slices.Repeat([]float64{nan}, n) }

// knowns are the finite values.
func knowns(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return !known(v) })
}

// mean is the mean of the finite values, NaN without one.
func mean(values []float64) float64 { return stat.Mean(knowns(values), nil) }

// largest is the largest finite value of all lists, and 0 without one.
func largest(lists ...[]float64) float64 {
	return slices.Max(append(knowns(slices.Concat(lists...)), 0))
}
