package router

// The levels at which a load or a time is spread: over ranks or over experts.
const (
	LevelRank   = "rank"
	LevelExpert = "expert"
)

// Balance describes how evenly a total is spread over n parts: slots over
// experts, slots over ranks, or nanoseconds over ranks. All ratios are
// dimensionless and undefined (see Number) when the total is zero or there are
// no parts.
type Balance struct {
	Parts        int    `json:"parts"`         // n
	Total        Number `json:"total"`         // Σx
	Max          Number `json:"max"`           // max x
	MaxOverMean  Number `json:"max_over_mean"` // max/mean, in [1, n]; 1 is best
	Imbalance    Number `json:"imbalance"`     // max/mean − 1, in [0, n−1]; the number the 10 % threshold is about
	Balancedness Number `json:"balancedness"`  // mean/max, in (0, 1]; what SGLang, vLLM and LMSYS print
	Active       int    `json:"active"`        // parts with x > 0
	Worst        int    `json:"worst"`         // index of the largest part, the lowest one on a tie; −1 without parts
}

// BalanceOf computes the Balance of the parts, which must not be negative.
func BalanceOf[T int64 | float64](parts []T) Balance {
	b := Balance{
		Parts: len(parts), Worst: -1,
		Max: Undefined(), MaxOverMean: Undefined(), Imbalance: Undefined(),
		Balancedness: Undefined(),
	}
	if len(parts) == 0 {
		return b
	}
	var total, most float64
	for i, p := range parts {
		x := float64(p)
		total += x
		if x > 0 {
			b.Active++
		}
		if b.Worst < 0 || x > most {
			b.Worst, most = i, x
		}
	}
	b.Total, b.Max = Number(total), Number(most)
	if total > 0 {
		b.MaxOverMean = OverMean(most, total, len(parts))
		b.Imbalance, b.Balancedness = b.MaxOverMean-1, Number(total/float64(len(parts))/most)
	}
	return b
}

// Floor is the smallest max/mean that any assignment of total indivisible
// slots to n equal parts can reach:
//
//	⌈total/n⌉·n / total
//
// It is at least 1 and undefined for no slots or no parts. A flag compares with
// the floor: one token of top-2 over 16 experts cannot do better than 8.
func Floor(total int64, parts int) Number {
	if total <= 0 || parts <= 0 {
		return Undefined()
	}
	n := int64(parts)
	return OverMean((total+n-1)/n, total, parts)
}

// OverMean is part over the mean of a total over so many parts, part·parts/total: in
// [1, parts] for the largest part. It is undefined without a total.
func OverMean[T int64 | float64](part, total T, parts int) Number {
	if total == 0 {
		return Undefined()
	}
	return Number(float64(part) * float64(parts) / float64(total))
}
