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
	parts, share := make([]int64, len(weights)), make([]float64, len(weights))
	free := make([]int, len(weights))
	for i := range free {
		free[i] = i
	}
	for total > 0 {
		sum := 0.0
		for _, i := range free {
			sum += weights[i]
		}
		left, open := total, []int(nil)
		for _, i := range free {
			share[i] = float64(total) / float64(len(free))
			if sum > 0 {
				share[i] = float64(total) * (weights[i] / sum)
			}
			if share[i] >= float64(caps[i]) {
				parts[i] = caps[i]
				left -= caps[i]
			} else {
				open = append(open, i)
			}
		}
		if len(open) == len(free) {
			roundUp(parts, share, free, total)
			break
		}
		total, free = left, open
	}
	return parts
}

// roundUp gives each free part the whole of its share, and the slots left over one
// each to the largest fractions.
func roundUp(parts []int64, share []float64, free []int, total int64) {
	for _, i := range free {
		parts[i] = int64(share[i])
		total -= parts[i]
	}
	slices.SortStableFunc(free, func(a, b int) int {
		return cmp.Compare(share[b]-math.Floor(share[b]), share[a]-math.Floor(share[a]))
	})
	for n := range total {
		parts[free[n]]++
	}
	// A share that rounding lifted to a whole number counted one too many.
	for n := len(free) - 1; total < 0; n-- {
		if i := free[n]; parts[i] > 0 {
			parts[i]--
			total++
		}
	}
}
