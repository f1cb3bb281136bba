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
	if g.Shape.Grouped() && !g.Method.GroupLimited() {
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
	rule   rule
	shape  Shape
	scale  float32
	bias   []float32 // one per expert; nil without
	score  []float32 // what the method chooses by, per expert; the logits themselves if it is those
	best   ranking   // the chosen experts
	power  []float64 // eˣ⁻ᵐ of all experts, or of the chosen ones
	groups ranking   // the chosen groups
	two    ranking   // the best of a group
	open   []bool    // by group: may its experts be chosen
	sums   []float32 // by group: its score
}

// NewRouter makes a router of a valid gate.
func NewRouter(g Gate) (*Router, error) {
	if err := g.Validate(); err != nil {
		return nil, fmt.Errorf("making a router: %w", err)
	}
	r := &Router{rule: g.Method.rule(), shape: g.Shape, scale: cmp.Or(g.Scale, 1), bias: slices.Clone(g.Bias),
		score: make([]float32, g.Shape.Experts), power: make([]float64, g.Shape.Experts), best: newRanking(g.Shape.TopK)}
	if g.Shape.Grouped() {
		r.groups, r.two = newRanking(g.Shape.TopKGroups), newRanking(min(2, g.Shape.GroupSize()))
		r.open, r.sums = make([]bool, g.Shape.Groups), make([]float32, g.Shape.Groups)
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
	r.choose()
	copy(ids, r.best.index)
	if weights != nil {
		r.weigh(weights, logits)
	}
}

// rate fills score with what the method chooses by.
func (r *Router) rate(logits []float32) {
	switch {
	case r.rule.byLogit:
		r.score = logits
	case r.rule.scores == softmaxScores:
		r.softmax(r.score, logits)
	default:
		for e, x := range logits {
			if r.score[e] = float32(r.rule.score(x)); r.bias != nil {
				r.score[e] += r.bias[e]
			}
		}
	}
}

// softmax fills out with eˣ⁻ᵐ / Σeˣ⁻ᵐ, m the largest logit; sums run in float64 in the
// order of the logits, which may be out itself.
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

// choose finds the best experts of score.
func (r *Router) choose() {
	r.best.reset()
	if !r.shape.Grouped() {
		r.best.offerAll(0, r.score)
		return
	}
	r.rankGroups()
	size := r.shape.GroupSize()
	for g, open := range r.open {
		if open {
			r.best.offerAll(int32(g*size), r.score[g*size:(g+1)*size])
		}
	}
}

// rankGroups opens the groups with the largest scores: DeepSeekV3's is the sum of a group's two
// largest, or its only one.
func (r *Router) rankGroups() {
	size := r.shape.GroupSize()
	for g := range r.open {
		r.open[g], r.sums[g] = false, 0
		r.two.reset()
		r.two.offerAll(0, r.score[g*size:(g+1)*size])
		for _, score := range r.two.value {
			r.sums[g] += score
		}
	}
	r.groups.reset()
	r.groups.offerAll(0, r.sums)
	for _, g := range r.groups.index {
		r.open[g] = true
	}
}

// tiny keeps a sum of scores from being zero; DeepSeek-V3's own constant.
const tiny = 1e-20

// weigh gives the chosen experts their weights.
func (r *Router) weigh(weights, logits []float32) {
	soft, eps := r.rule.scores == softmaxScores, float32(tiny)
	if copy(weights, r.best.value); soft {
		eps = 0
	}
	for i, e := range r.best.index {
		if !soft {
			weights[i] = float32(r.rule.score(logits[e]))
		}
	}
	if soft && r.rule.byLogit {
		r.softmax(weights, weights)
	}
	if r.rule.shared {
		share(weights, eps)
	}
	for i := range weights {
		weights[i] *= r.scale
	}
}

// share divides each weight by their sum plus eps, in float32, summing in the order of the
// weights.
func share(weights []float32, eps float32) {
	var sum float32
	for _, w := range weights {
		sum += w
	}
	for i, w := range weights {
		weights[i] = w / (sum + eps)
	}
}
