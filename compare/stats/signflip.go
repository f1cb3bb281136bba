package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// MaxFlipExact is the number of differences up to which SignFlip counts all
// 2ⁿ sign assignments.
const MaxFlipExact = 30

// FlipTest is the result of SignFlip.
type FlipTest struct {
	N     int
	Sum   float64 // observed Σd
	P     float64 // two-sided: share of assignments with |Σ±d| ≥ |Σd|
	Exact bool
	Draws int // sign assignments drawn when not exact, 0 otherwise
}

// SignFlip is Fisher's randomization test of the mean: under the hypothesis
// that a pair's arms could be swapped, every difference may as well have had
// the other sign.
//
// Up to MaxFlipExact differences all 2ⁿ assignments count, the observed one
// among them, so P ≥ 2/2ⁿ unless a difference is zero. The two halves of the
// differences are enumerated apart and their sums matched in order: O(2^(n/2)·n)
// time, 10 ms. Beyond that it draws assignments from src and P is
// (hits+1)/(draws+1), never zero; src and draws are not touched when exact.
// Sums within 10⁻¹²·Σ|d| of the observed one count as ties with it.
//
// P is NaN for no differences, for one that is not finite, and for more than
// MaxFlipExact with draws < 1. A sum of all-zero differences has P = 1.
//
// Fisher, The Design of Experiments, 1935, §21.
func SignFlip(d []float64, draws int, src rand.Source) FlipTest {
	r := FlipTest{N: len(d), P: math.NaN(), Exact: len(d) <= MaxFlipExact}
	var size float64
	for _, x := range d {
		r.Sum += x
		size += math.Abs(x)
	}
	if len(d) == 0 || !finite(d) {
		return r
	}
	atLeast := math.Abs(r.Sum) - 1e-12*size
	switch {
	case size == 0:
		r.P = 1
	case r.Exact:
		r.P = exactFlips(d, atLeast)
	case draws > 0:
		r.Draws = draws
		r.P = drawnFlips(d, atLeast, draws, src)
	}
	return r
}

// exactFlips counts pairs (a, b) of half sums with a+b ≥ atLeast; by symmetry
// as many lie below −atLeast. When atLeast ≤ 0 every assignment counts.
func exactFlips(d []float64, atLeast float64) float64 {
	if atLeast <= 0 {
		return 1
	}
	left, right := flipSums(d[:len(d)/2]), flipSums(d[len(d)/2:])
	count, j := 0, len(right)
	for _, a := range left {
		for j > 0 && a+right[j-1] >= atLeast {
			j--
		}
		count += len(right) - j
	}
	return min(1, math.Ldexp(2*float64(count), -len(d)))
}

// flipSums is every signed sum of d, ascending.
func flipSums(d []float64) []float64 {
	sums := []float64{0}
	for _, x := range d {
		next := make([]float64, 0, 2*len(sums))
		for _, s := range sums {
			next = append(next, s+x, s-x)
		}
		sums = next
	}
	slices.Sort(sums)
	return sums
}

func drawnFlips(d []float64, atLeast float64, draws int, src rand.Source) float64 {
	hits := 0
	for range draws {
		var sum float64
		var bits uint64
		for i, x := range d {
			if i%64 == 0 {
				bits = src.Uint64()
			}
			if bits&1 == 1 {
				x = -x
			}
			bits >>= 1
			sum += x
		}
		if math.Abs(sum) >= atLeast {
			hits++
		}
	}
	return float64(hits+1) / float64(draws+1)
}
