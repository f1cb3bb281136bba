package stats

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// mostPlanned ends the search for a number of units.
const mostPlanned = 1_000_000

// power is the probability with which as many units as ToDecide says would decide.
const power = 0.8

// ToDecide is the number of units, in all, at which an interval centered
// about a true effect leaves out a threshold that lies distance away, four times in five:
// the smallest n ≥ least with
//
//	(t₍(1+confidence)/2, n−lost₎ + z₍0.8₎) · sd/√n ≤ distance
//
// lost is 1 of PairedT, 2 of Crossover. It takes the distance and the standard deviation as known; when both come
// from few units the number is a rough guide. False when an argument is not finite, or when a million are not
// enough: an effect on the threshold is never decided.
func ToDecide(distance, sd, confidence float64, least, lost int) (n int, ok bool) {
	n = least + sort.Search(mostPlanned, func(more int) bool {
		n := least + more
		q := studentsT(n-lost).Quantile((1+confidence)/2) + distuv.UnitNormal.Quantile(power)
		return q*sd/math.Sqrt(float64(n)) <= math.Abs(distance)
	})
	return n, n < mostPlanned
}
