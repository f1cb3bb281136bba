package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// HodgesLehmann estimates the center of symmetric differences by the median of
// their Walsh averages (dᵢ+dⱼ)/2, i ≤ j, and bounds it by inverting the
// signed-rank test: with M = n(n+1)/2 averages in order and C the largest whole
// number with P(W⁺ ≤ C) ≤ (1−confidence)/2,
//
//	[A₍C+1₎, A₍M−C₎], whose coverage is 1 − 2·P(W⁺ ≤ C)
//
// That coverage, not the one asked for, is the Confidence returned: 96.9 % for
// 6 pairs asked for 95 %. When even the widest interval, from the smallest to
// the largest difference, covers less than asked (fewer than
// MinPairs(confidence) differences, 6 for 95 %), or confidence is not between 0
// and 1, the bounds are NaN. So are all results for no differences or for one
// that is not finite.
//
// It assumes independent, symmetric differences. Ties and zeros stay in and
// make the closed interval conservative. Exact up to MaxExactPairs, the normal
// approximation above. The averages are never stored: each order statistic is
// found by bisection on their count, O(n) memory and about 64·n steps.
//
// Hodges and Lehmann, Annals of Mathematical Statistics 34(2), 1963; Hollander,
// Wolfe and Chicken, Nonparametric Statistical Methods, 3rd ed., §§3.2–3.3.
func HodgesLehmann(d []float64, confidence float64) Interval {
	n := len(d)
	if n == 0 || !finite(d) {
		return undefinedInterval(math.NaN(), n)
	}
	sorted := slices.Sorted(slices.Values(d))
	averages := n * (n + 1) / 2
	result := undefinedInterval((walsh(sorted, (averages+1)/2)+walsh(sorted, averages/2+1))/2, n)
	if !(confidence > 0 && confidence < 1) {
		return result
	}
	c, tail, ok := rankCritical(n, (1-confidence)/2)
	if !ok {
		return result
	}
	result.Low, result.High = walsh(sorted, c+1), walsh(sorted, averages-c)
	result.Confidence = 1 - 2*tail
	return result
}

// MinPairs is the least number of pairs for which the exact signed-rank
// interval reaches the confidence: the smallest n with 2/2ⁿ ≤ 1 − confidence.
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

// rankCritical is the largest c with P(W⁺ ≤ c) ≤ tail for n untied
// differences, and that probability; false when P(W⁺ ≤ 0) is already more.
func rankCritical(n int, tail float64) (c int, p float64, ok bool) {
	// tail is computed as (1 − confidence)/2, which for 0.96875 and 6 pairs must
	// still admit 1/64; the slack is far below any probability's step.
	tail += 1e-12
	if n > MaxExactPairs {
		c, p = normalCritical(n, tail)
		return c, p, true
	}
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i + 1
	}
	c = -1
	for s, at := range nullDistribution(ranks) {
		if p+at > tail {
			break
		}
		c, p = s, p+at
	}
	return c, p, c >= 0
}

// normalCritical serves more than MaxExactPairs, where no tail above the slack
// reaches down to 0.
func normalCritical(n int, tail float64) (c int, p float64) {
	m := float64(n)
	null := distuv.Normal{Mu: m * (m + 1) / 4, Sigma: math.Sqrt(m * (m + 1) * (2*m + 1) / 24)}
	c = int(math.Floor(null.Quantile(tail) - 0.5))
	return c, null.CDF(float64(c) + 0.5)
}

// walsh is the k-th smallest (from 1) Walsh average of sorted values: the
// smallest floating-point number v such that at least k averages are ≤ v. The
// averages are monotone in both indices, rounding included, so that number is
// one of them, and bisection over the ordered bit patterns finds it exactly.
func walsh(sorted []float64, k int) float64 {
	low, high := orderedBits(sorted[0]), orderedBits(sorted[len(sorted)-1])
	for low < high {
		mid := low + (high-low)/2
		if walshCount(sorted, fromOrderedBits(mid)) >= k {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return fromOrderedBits(low)
}

// walshCount counts the averages that are at most v. As i grows, the largest j
// with (xᵢ+xⱼ)/2 ≤ v can only fall, so both indices move once over the values.
func walshCount(sorted []float64, v float64) int {
	count, j := 0, len(sorted)-1
	for i, x := range sorted {
		for j >= i && x/2+sorted[j]/2 > v {
			j--
		}
		if j < i {
			break
		}
		count += j - i + 1
	}
	return count
}

// orderedBits maps a float to an integer such that the order of the integers
// is the order of the floats; −0 and +0 stay neighbors.
func orderedBits(x float64) uint64 {
	b := math.Float64bits(x)
	if b>>63 == 1 {
		return ^b
	}
	return b | 1<<63
}

func fromOrderedBits(u uint64) float64 {
	if u>>63 == 1 {
		return math.Float64frombits(u &^ (1 << 63))
	}
	return math.Float64frombits(^u)
}
