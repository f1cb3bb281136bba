package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// maxPlannedPairs ends the search for a number of pairs.
const maxPlannedPairs = 1_000_000

// PairsToDecide is the number of pairs, in all, at which an interval centered
// about a true effect leaves out a threshold that lies distance away, with
// probability power (0.5 to below 1): the smallest n ≥ MinPairs(confidence) with
//
//	(t₍(1+confidence)/2, n−2₎ + z₍power₎) · sd/√n ≤ distance
//
// It takes the distance and the standard deviation as known; when both come
// from few pairs the number is a rough guide. False when an argument is not positive and
// finite, or when a million pairs are not enough: an effect on the threshold is never decided.
func PairsToDecide(distance, sd, confidence, power float64) (n int, ok bool) {
	if !(power >= 0.5 && power < 1) {
		return 0, false
	}
	return needed(math.Abs(distance), sd, confidence, power, max(3, MinPairs(confidence)), 2)
}

// LaunchesToDecide is PairsToDecide of PairedT's interval: n−1 degrees of freedom, and two
// launches at least.
func LaunchesToDecide(distance, sd, confidence, power float64) (n int, ok bool) {
	if !(power >= 0.5 && power < 1) {
		return 0, false
	}
	return needed(math.Abs(distance), sd, confidence, power, 2, 1)
}

// needed is the number, low at least, at which an interval with so many degrees of freedom
// less leaves out what is a distance away.
func needed(distance, sd, confidence, power float64, low, lost int) (int, bool) {
	if !(distance > 0) || !(sd >= 0) || math.IsInf(sd, 0) || !(confidence > 0 && confidence < 1) {
		return 0, false
	}
	enough := func(n int) bool {
		q := studentsT(n-lost).Quantile((1+confidence)/2) + distuv.UnitNormal.Quantile(power)
		return q*sd/math.Sqrt(float64(n)) <= distance
	}
	if enough(low) {
		return low, true
	}
	high := low
	for !enough(high) {
		if high *= 2; high > maxPlannedPairs {
			return 0, false
		}
	}
	low = high / 2 // not enough; the half-width falls as n grows
	for high-low > 1 {
		if mid := (low + high) / 2; enough(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high, true
}
