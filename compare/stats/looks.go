package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

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

// Looks are the numbers of pairs after which a campaign that runs until it is
// decided looks at its pairs, ending with the cap; nil if the cap is too low
// for the first look to be able to decide.
//
// The rule: with K looks, each spends (1−confidence)/K of the error, so the
// chance that any of the K intervals misses the true gain is at most
// 1−confidence, whatever the dependence between looks (Bonferroni). A look with
// n pairs can decide only if 2/2ⁿ ≤ (1−confidence)/K, the least two-sided error
// of an exact sign test; the first look is the smallest even n for
// which that holds, and each further one is half as large again, rounded up to
// an even number so that blocks of the order are whole.
func Looks(most int, confidence float64) []int {
	for first := 4; first <= most; first += 2 {
		looks := looksFrom(first, most)
		if math.Exp2(float64(1-first)) <= (1-confidence)/float64(len(looks)) {
			return looks
		}
	}
	return nil
}

func looksFrom(first, most int) []int {
	var looks []int
	for n := first; n < most; n = (3*n/2 + 1) / 2 * 2 {
		looks = append(looks, n)
	}
	return append(looks, most)
}

// LookConfidence is the confidence of the interval at each look: 1−(1−c)/K.
func LookConfidence(most int, confidence float64) float64 {
	return 1 - (1-confidence)/float64(max(1, len(Looks(most, confidence))))
}

// LeastCap is the least cap with which a sequence of looks can decide.
func LeastCap(confidence float64) int {
	for most := 2; most < 1000; most++ {
		if len(Looks(most, confidence)) > 0 {
			return most
		}
	}
	return 1000
}

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
