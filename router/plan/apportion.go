package plan

import (
	"cmp"
	"math"
	"slices"
)

// apportion divides total into whole parts in proportion to the weights, no
// part above its cap: Hamilton's method of largest remainders, ties to the
// lower index. What capped parts cannot take goes to the others in proportion
// to their weights, and evenly when those are all zero. The caps must leave
// room for the total, and weights must not be negative.
func apportion(total int64, weights []float64, caps []int64) []int64 {
	parts := make([]int64, len(weights))
	free := make([]int, 0, len(weights))
	for i := range weights {
		free = append(free, i)
	}
	left := total
	for left > 0 {
		share := shares(left, weights, free)
		var open []int
		for j, i := range free {
			if share[j] >= float64(caps[i]) {
				parts[i] = caps[i]
			} else {
				open = append(open, i)
			}
		}
		if len(open) == len(free) {
			roundUp(parts, share, free, left)
			return parts
		}
		left = total
		for _, n := range parts {
			left -= n
		}
		free = open
	}
	return parts
}

// shares is the real number of each free part.
func shares(total int64, weights []float64, free []int) []float64 {
	sum := 0.0
	for _, i := range free {
		sum += weights[i]
	}
	out := make([]float64, len(free))
	for j, i := range free {
		if sum > 0 {
			out[j] = float64(total) * (weights[i] / sum)
		} else {
			out[j] = float64(total) / float64(len(free))
		}
	}
	return out
}

// roundUp gives each part the whole of its share, and the slots left over one
// each to the largest fractions.
func roundUp(parts []int64, share []float64, free []int, total int64) {
	order := make([]int, len(free))
	for j, i := range free {
		parts[i] = int64(share[j])
		total -= parts[i]
		order[j] = j
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(share[b]-math.Floor(share[b]), share[a]-math.Floor(share[a]))
	})
	for n := int64(0); n < total; n++ {
		parts[free[order[n]]]++
	}
	// A share that rounding lifted to a whole number counted one too many.
	for j := len(order) - 1; total < 0; j-- {
		if i := free[order[j]]; parts[i] > 0 {
			parts[i]--
			total++
		}
	}
}
