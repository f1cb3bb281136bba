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

// RankTest is the result of SignedRank.
type RankTest struct {
	N     int     // differences ranked: those that are not zero
	Zeros int     // differences of exactly zero, left out
	Ties  bool    // equal absolute differences, which share their mean rank
	Plus  float64 // W⁺, the sum of the ranks of the positive differences, in [0, N(N+1)/2]
	// P is two-sided: min(1, 2·min(PLess, PGreater)). PGreater = P(W⁺ ≥ Plus)
	// is small for positive differences, PLess = P(W⁺ ≤ Plus) for negative ones.
	P, PGreater, PLess float64
	Exact              bool // N ≤ MaxExactPairs
}

// SignedRank is Wilcoxon's signed-rank test of the hypothesis that the
// differences d are symmetric about zero. To test against another centre m,
// subtract m first.
//
// It assumes independent, symmetric differences and nothing about their shape.
// Zeros are left out before ranking (Wilcoxon's rule, not Pratt's). Tied
// absolute differences get mid-ranks and the null distribution is that of the
// mid-ranks themselves, so the p-value is exact with ties too; equality is that
// of floating point, so differences should come from values of full precision.
//
// The null distribution is a convolution over doubled ranks: O(N³) additions,
// 10 ms at MaxExactPairs. The smallest two-sided p of N differences is 2/2ᴺ:
// 5 can never reach 0.05, 6 reach 0.031. Without a non-zero difference, or
// with one that is not finite, P, PGreater and PLess are NaN.
//
// Wilcoxon, Biometrics Bulletin 1(6), 1945; Hollander, Wolfe and Chicken,
// Nonparametric Statistical Methods, 3rd ed., §3.1.
func SignedRank(d []float64) RankTest {
	r := RankTest{P: math.NaN(), PGreater: math.NaN(), PLess: math.NaN()}
	if !finite(d) {
		return r
	}
	var used []float64
	for _, x := range d {
		if x != 0 {
			used = append(used, x)
		}
	}
	r.N, r.Zeros = len(used), len(d)-len(used)
	if r.N == 0 {
		return r
	}
	ranks, tied := doubledRanks(used)
	plus := 0
	for i, x := range used {
		if x > 0 {
			plus += ranks[i]
		}
	}
	r.Ties, r.Plus, r.Exact = tied, float64(plus)/2, r.N <= MaxExactPairs
	if r.Exact {
		r.PLess, r.PGreater = exactTails(ranks, plus)
	} else {
		r.PLess, r.PGreater = normalTails(ranks, plus)
	}
	r.P = min(1, 2*min(r.PLess, r.PGreater))
	return r
}

// doubledRanks returns twice the mid-rank of each |d|, which is always an
// integer: a run of equal values at places a…b (from 1) has mid-rank (a+b)/2.
func doubledRanks(d []float64) (ranks []int, tied bool) {
	order := make([]int, len(d))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(math.Abs(d[a]), math.Abs(d[b])) })
	ranks = make([]int, len(d))
	for from := 0; from < len(order); {
		to := from
		for to+1 < len(order) && math.Abs(d[order[to+1]]) == math.Abs(d[order[from]]) {
			to++
		}
		for i := from; i <= to; i++ {
			ranks[order[i]] = (from + 1) + (to + 1)
		}
		tied = tied || to > from
		from = to + 1
	}
	return ranks, tied
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

func exactTails(ranks []int, plus int) (le, ge float64) {
	for s, p := range nullDistribution(ranks) {
		if s <= plus {
			le += p
		}
		if s >= plus {
			ge += p
		}
	}
	return min(1, le), min(1, ge)
}

// normalTails matches mean Σr/2 and variance Σr²/4, which the mid-ranks
// already correct for ties; half a rank is the continuity correction.
func normalTails(ranks []int, plus int) (le, ge float64) {
	var sum, squares float64
	for _, r := range ranks {
		sum += float64(r)
		squares += float64(r) * float64(r)
	}
	null := distuv.Normal{Mu: sum / 2, Sigma: math.Sqrt(squares) / 2}
	const half = 1 // half a rank, doubled
	return null.CDF(float64(plus) + half), null.Survival(float64(plus) - half)
}
