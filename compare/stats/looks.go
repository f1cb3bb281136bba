package stats

import "math"

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
