package stats

import (
	"cmp"
	"math"
	"slices"
)

// Holm adjusts the p-values of several hypotheses so that the chance of any
// false rejection stays below the level at which the adjusted values are read:
// in ascending order p₍ᵢ₎ becomes max over j ≤ i of min(1, (m−j+1)·p₍ⱼ₎). It
// needs no independence. The result is in the order given. An undefined p (NaN)
// stays NaN and does not count among the m.
//
// Holm, Scandinavian Journal of Statistics 6(2), 1979.
func Holm(p []float64) []float64 {
	adjusted := slices.Clone(p)
	var order []int
	for i, v := range p {
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(p[a], p[b]), cmp.Compare(a, b)) })
	most := 0.0
	for j, i := range order {
		most = max(most, min(1, float64(len(order)-j)*p[i]))
		adjusted[i] = most
	}
	return adjusted
}
