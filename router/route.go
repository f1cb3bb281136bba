package router

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Gate describes a model's router.
type Gate struct {
	Method Method
	Shape  Shape
	// Scale multiplies the combine weights: routed_scaling_factor. 0 means 1.
	Scale float32
	// Bias is added to the score of each expert when choosing, and never to a
	// weight: e_score_correction_bias, one value per expert. Nil is no bias.
	// Only the methods that are Biased know it.
	Bias []float32
}

// Validate says what is impossible about a gate: a shape that contradicts
// itself, groups or a bias that the method does not know, a bias with
// too few or too many values.
func (g Gate) Validate() error {
	if _, err := ParseMethod(string(g.Method)); err != nil {
		return err
	}
	if err := g.Shape.Validate(); err != nil {
		return err
	}
	if g.Shape.Grouped() && !g.Method.groupLimited() {
		return fmt.Errorf("%w: %s does not limit tokens to groups, and the shape has %d groups", ErrShape, g.Method,
			g.Shape.Groups)
	}
	if g.Bias != nil && (!g.Method.Biased() || len(g.Bias) != g.Shape.Experts) {
		return fmt.Errorf("%w: %d bias values for %d experts of %s", ErrShape, len(g.Bias), g.Shape.Experts, g.Method)
	}
	return nil
}

// Router routes tokens one row of logits at a time. It keeps scratch space, so
// it is for one goroutine; make one per goroutine.
type Router struct {
	Gate
	rule  rule
	score []float32 // what the method chooses by, per expert
	left  []float32 // the same of experts that may still be chosen, of the others −∞
	power []float64 // eˣ⁻ᵐ of all experts, or of the chosen ones
	sums  []float32 // by group: its score, −∞ once it is chosen
	open  []int32   // the chosen groups
}

// NewRouter makes a router of a valid gate.
func NewRouter(g Gate) (*Router, error) {
	if err := g.Validate(); err != nil {
		return nil, fmt.Errorf("making a router: %w", err)
	}
	g.Scale, g.Bias = cmp.Or(g.Scale, 1), slices.Clone(g.Bias)
	n := g.Shape.Experts
	r := &Router{Gate: g, rule: g.Method.rule(), score: make([]float32, n), left: make([]float32, n),
		power: make([]float64, n)}
	if g.Shape.Grouped() {
		r.sums, r.open = make([]float32, g.Shape.Groups), make([]int32, g.Shape.TopKGroups)
	}
	return r, nil
}

// Route chooses the experts of one token. logits has one value per expert, finite and
// already rounded to the dtype the engine would hold them in. ids and weights
// receive TopK values each, in falling order of the score the method chooses
// by; among equal scores the lower expert index comes first and wins. weights
// may be nil when they are not wanted. Route allocates nothing.
func (r *Router) Route(logits []float32, ids []int32, weights []float32) {
	r.rate(logits)
	copy(r.left, r.score)
	if r.Shape.Grouped() {
		size := r.Shape.GroupSize()
		for g := range r.sums {
			r.sums[g] = twoBest(r.left[g*size : (g+1)*size])
		}
		take(r.open, r.sums)
		for e := range r.left {
			if r.sums[e/size] > none {
				r.left[e] = none
			}
		}
	}
	take(ids, r.left)
	if weights != nil {
		r.weigh(ids, weights, logits)
	}
}

// rate fills score with what the method chooses by.
func (r *Router) rate(logits []float32) {
	switch {
	case r.rule.byLogit:
		copy(r.score, logits)
	case r.rule.scores == softmaxScores:
		r.softmax(r.score, logits)
	default:
		for e, x := range logits {
			if r.score[e] = float32(r.rule.score(x)); r.Bias != nil {
				r.score[e] += r.Bias[e]
			}
		}
	}
}

// softmax fills out with the softmax of as many logits; out may be the logits themselves.
func (r *Router) softmax(out, logits []float32) {
	most, sum := float64(slices.Max(logits)), 0.0
	for i, x := range logits {
		r.power[i] = math.Exp(float64(x) - most)
		sum += r.power[i]
	}
	for i := range out {
		out[i] = float32(r.power[i] / sum)
	}
}

var none = float32(math.Inf(-1))

// take fills the list with the indices of the largest values, of equal ones the first, and leaves −∞ there.
func take(list []int32, values []float32) {
	for i := range list {
		best := 0
		for j, v := range values {
			if v > values[best] {
				best = j
			}
		}
		for values[best] == none && slices.Contains(list[:i], int32(best)) { // the others are −∞, too
			best++
		}
		list[i], values[best] = int32(best), none
	}
}

// twoBest is the sum of the two largest values, or the only one.
func twoBest(values []float32) float32 {
	best, second := values[0], float32(0)
	for i, v := range values[1:] {
		if v > best {
			best, second = v, best
		} else if i == 0 || v > second {
			second = v
		}
	}
	return best + second
}

// tiny is the ε of the methods that divide sigmoid scores by their sum.
const tiny = 1e-20

// weigh fills weights with the combine weights of the chosen experts.
func (r *Router) weigh(ids []int32, weights, logits []float32) {
	soft, sum := r.rule.scores == softmaxScores, float32(0)
	for i, e := range ids {
		if weights[i] = r.score[e]; !soft {
			weights[i] = float32(r.rule.score(logits[e]))
		}
	}
	if soft && r.rule.byLogit {
		r.softmax(weights, weights)
	}
	for _, w := range weights {
		sum += w
	}
	if !soft {
		sum += tiny
	}
	for i := range weights {
		if r.rule.shared {
			weights[i] /= sum
		}
		weights[i] *= r.Scale
	}
}
