package logits

import (
	"math"
	"slices"
	"strconv"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
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
// It is that of real numbers. Routers add float32 ones, whose sums round: a bias
// so large, or a spread so close to the limit, that its last places matter may
// tie. marginSatisfied leaves room for that, and routing decides the rest.
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

// marginSatisfied is the least number of experts that a row must have in each of
// its groups for the two logits alone to decide what a router picks of it: the
// spread of the bias is below the largest tolerated, with room for rounding. Where
// no number suffices it is more than any row has. The score of a group is a float32
// sum of two scores and two biases: three roundings, each of at most 2⁻²⁴ of a sum
// that is at most twice the largest score with its bias. Both sides of a comparison
// together, the rounding of the scores themselves included, stay below 2⁻¹⁹ of that
// largest.
func marginSatisfied(g router.Gate, v logitPair) (fewest int) {
	largest := g.Method.Score(v.high)
	for _, b := range g.Bias {
		largest = max(largest, g.Method.Score(v.high)+math.Abs(float64(b)))
	}
	for fewest := 1; fewest <= 2; fewest++ {
		if Spread(g.Bias)+largest*0x1p-19 < largestBias(g, v, fewest) {
			return fewest
		}
	}
	return g.Shape.TopK + 1
}

// Feasibility says how many of an entry's planned choices the gate lets through.
type Feasibility struct {
	// ProjectedRows are the tokens whose experts are not the planned ones: the gate's
	// correction bias outweighs the logits, or the plan wants more groups than the gate
	// allows. The entry holds what the router picks instead.
	ProjectedRows int
	// LargestBias is the largest spread of a correction bias that the logits
	// tolerate; +Inf for methods that add none.
	LargestBias float64
}

// Status is "exact" where the router picks the planned experts of every token, or "projected".
func (f Feasibility) Status() string {
	if f.ProjectedRows > 0 {
		return "projected"
	}
	return "exact"
}

// describe adds to an identity what was found while writing.
func (f Feasibility) describe(id identity, checksum string) metadata {
	m := metadata{id, f.ProjectedRows, "any", checksum}
	if !math.IsInf(f.LargestBias, 1) {
		m.Tolerated = strconv.FormatFloat(f.LargestBias, 'g', -1, 64)
	}
	return m
}

// certify proves how even the loads of a periodic entry are for every number of tokens:
// counted from the stored experts of each rank after each row, and carried beyond the last
// row where the table is level there.
func certify(r Record, ids [][]int32) *plan.Proof {
	k := r.Spec.Gate.Shape.TopK
	proof := plan.ProveRows(r.Spec.problem(AnyTokens), r.Rows, r.Period,
		func(source, token int) []int32 { return ids[source][token*k:][:k] })
	return &proof
}
