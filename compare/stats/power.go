package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// maxPlannedPairs ends the search for a number of pairs.
const maxPlannedPairs = 1_000_000

// ToDecide is the number of units, in all, at which an interval centered
// about a true effect leaves out a threshold that lies distance away, with
// probability power (0.5 to below 1): the smallest n ≥ least with
//
//	(t₍(1+confidence)/2, n−lost₎ + z₍power₎) · sd/√n ≤ distance
//
// lost is 1 of PairedT, 2 of Crossover. It takes the distance and the standard deviation as known; when both come
// from few units the number is a rough guide. False when an argument is not positive and
// finite, or when a million are not enough: an effect on the threshold is never decided.
func ToDecide(distance, sd, confidence, power float64, least, lost int) (n int, ok bool) {
	distance = math.Abs(distance)
	if !(power >= 0.5 && power < 1) || !(distance > 0) || !(sd >= 0) || math.IsInf(sd, 0) ||
		!(confidence > 0 && confidence < 1) {
		return 0, false
	}
	enough := func(n int) bool {
		q := studentsT(n-lost).Quantile((1+confidence)/2) + distuv.UnitNormal.Quantile(power)
		return q*sd/math.Sqrt(float64(n)) <= distance
	}
	if enough(least) {
		return least, true
	}
	high := least
	for !enough(high) {
		if high *= 2; high > maxPlannedPairs {
			return 0, false
		}
	}
	low := high / 2 // not enough; the half-width falls as n grows
	for high-low > 1 {
		if mid := (low + high) / 2; enough(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high, true
}

// MinPairs is the least number of pairs of which all gaining could reach the confidence
// by an exact sign test: the smallest n with 2/2ⁿ ≤ 1 − confidence,
// 6 for 0.95, 8 for 0.99. It is 0, meaning that no number is enough, unless
// confidence lies between 0 and 1.
func MinPairs(confidence float64) int {
	if !(confidence > 0 && confidence < 1) {
		return 0
	}
	n := 1
	for math.Ldexp(1, 1-n) > 1-confidence {
		n++
	}
	return n
}
