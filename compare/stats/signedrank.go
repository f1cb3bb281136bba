package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// MaxExactPairs is the number of pairs up to which signed-rank probabilities
// are exact. Above it they come from the normal approximation with continuity
// and tie corrections, whose two-sided p is off by at most 0.001 there.
const MaxExactPairs = 200

// SignedRank is the two-sided p-value of Wilcoxon's signed-rank test of the hypothesis
// that the differences d are symmetric about zero: with W⁺ the sum of the ranks of the
// positive ones and M that of all,
//
//	min(1, 2·P(W ≤ min(W⁺, M − W⁺)))
//
// To test against another center m, subtract m first.
//
// It assumes independent, symmetric differences and nothing about their shape.
// Zeros are left out before ranking (Wilcoxon's rule, not Pratt's). Tied
// absolute differences get mid-ranks and the null distribution is that of the
// mid-ranks themselves, so the p-value is exact with ties too; equality is that
// of floating point, so differences should come from values of full precision.
//
// The null distribution is a convolution over doubled ranks: O(N³) additions,
// 10 ms at MaxExactPairs. The smallest p of N differences is 2/2ᴺ: 5 can never reach
// 0.05, 6 reach 0.031. NaN without a non-zero difference, or with one that is not finite.
//
// Wilcoxon, Biometrics Bulletin 1(6), 1945; Hollander, Wolfe and Chicken,
// Nonparametric Statistical Methods, 3rd ed., §3.1.
func SignedRank(d []float64) float64 {
	used := slices.DeleteFunc(slices.Clone(d), func(x float64) bool { return x == 0 })
	if !finite(d) || len(used) == 0 {
		return math.NaN()
	}
	ranks, plus, total := doubledRanks(used), 0, 0
	for i, x := range used {
		total += ranks[i]
		if x > 0 {
			plus += ranks[i]
		}
	}
	tail := exactTail
	if len(used) > MaxExactPairs {
		tail = normalTail
	}
	return min(1, 2*tail(ranks, min(plus, total-plus)))
}

// doubledRanks returns twice the mid-rank of each |d|, which is always an
// integer: a run of equal values at places a…b (from 1) has mid-rank (a+b)/2.
func doubledRanks(d []float64) []int {
	order := make([]int, len(d))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(math.Abs(d[a]), math.Abs(d[b])) })
	ranks := make([]int, len(d))
	for from := 0; from < len(order); {
		to := from
		for to+1 < len(order) && math.Abs(d[order[to+1]]) == math.Abs(d[order[from]]) {
			to++
		}
		for i := from; i <= to; i++ {
			ranks[order[i]] = (from + 1) + (to + 1)
		}
		from = to + 1
	}
	return ranks
}

// nullDistribution is the probability of each possible sum of the ranks when
// every rank is counted or not with probability ½, independently.
func nullDistribution(ranks []int) []float64 {
	total := 0
	for _, r := range ranks {
		total += r
	}
	p := make([]float64, total+1)
	p[0] = 1
	reach := 0
	for _, r := range ranks {
		reach += r
		for s := reach; s >= 0; s-- {
			p[s] /= 2
			if s >= r {
				p[s] += p[s-r] / 2
			}
		}
	}
	return p
}

// exactTail is the probability of a sum of at most so much.
func exactTail(ranks []int, sum int) float64 {
	p := 0.0
	for _, at := range nullDistribution(ranks)[:sum+1] {
		p += at
	}
	return p
}

// normalTail matches mean Σr/2 and variance Σr²/4, which the mid-ranks already correct
// for ties; half a rank is the continuity correction.
func normalTail(ranks []int, sum int) float64 {
	var total, squares float64
	for _, r := range ranks {
		total += float64(r)
		squares += float64(r) * float64(r)
	}
	const half = 1 // half a rank, doubled
	return distuv.Normal{Mu: total / 2, Sigma: math.Sqrt(squares) / 2}.CDF(float64(sum) + half)
}
