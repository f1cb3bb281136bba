package logits

import (
	"math"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// saturated is the logit at which a float32 sigmoid has long been exactly 1, and
// its negative one at which it is 1e-14, while e³² is still far from overflow in
// kernels that compute it directly. It is exact in every element type.
const saturated = 32

// highest is the largest logit ever used, a power of two below float16's 65504.
const highest = 1 << 15

// logitPair are the two values that an entry's logits take: high for the experts
// of the plan, low for all others. Both are exact in every element type.
type logitPair struct{ high, low float32 }

// logitsOf is ±32 for every gate: the chosen experts of a token are equal, so
// their combine weights are, and the gap to the others is as large as a softmax
// or sigmoid can tell apart. Only the square root of a softplus has no upper
// bound: there high rises in powers of two until its score clears the spread of
// the gate's bias by 1.
func logitsOf(g router.Gate) logitPair {
	v := logitPair{high: saturated, low: -saturated}
	if g.Method == router.DeepSeekV4 {
		for v.high < highest && g.Method.Score(v.high) < Spread(g.Bias)+1 {
			v.high *= 2
		}
	}
	return v
}

// Spread is max − min of a correction bias, 0 without one.
func Spread(bias []float32) float64 {
	if len(bias) == 0 {
		return 0
	}
	return float64(slices.Max(bias)) - float64(slices.Min(bias))
}

// largestBias is the largest spread of a correction bias, max − min over the
// experts, that the two logits tolerate whatever the single values are: a bias
// with a smaller spread, known or not, leaves every choice as it is. fewest is
// the least number of chosen experts that a token has in one of its groups.
//
//	ungrouped, or two and more in each group:  score(high) − score(low)
//	a group entered for a single expert:       half of that
//
// The first keeps every chosen expert above every other, and the sum of a chosen
// group's two best above any other group's. With one chosen expert the second
// best of its group has the low logit, and two biased ones elsewhere may pass it.
// Methods without a bias tolerate any: +Inf.
//
// It holds for real numbers. Routers add float32 ones, whose sums round: routing decides.
func largestBias(g router.Gate, v logitPair, fewest int) float64 {
	if !g.Method.Biased() {
		return math.Inf(1)
	}
	gap := g.Method.Score(v.high) - g.Method.Score(v.low)
	if g.Shape.Grouped() && g.Shape.GroupSize() > 1 && fewest < 2 { // its score rests on an expert that is not chosen
		return gap / 2
	}
	return gap
}
