package logits

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
)

// ErrSpec is wrapped by the errors about specs that no cache can serve.
var ErrSpec = errors.New("impossible logits spec")

// What a manifest may claim is bounded before memory and time are spent on it: a few bytes
// can name any shape. Planning takes sources × experts of memory, and a time that grows
// with the slots of a step.
const (
	maxExperts = 1 << 12
	maxRanks   = 1 << 10
	maxSlots   = 1 << 15 // of one token of every rank
	// MaxTokens is the most tokens of one rank.
	MaxTokens = 1 << 24
)

// AnyTokens is the batch size of a periodic entry, which serves any number of tokens (see
// plan.Extent).
const AnyTokens = router.NoID

// Spec is everything that the entries of one cache have in common: how a layer of a model
// routes on which ranks. An entry adds its plan, rank and batch size.
type Spec struct {
	Model  string        // the name reports show, such as "deepseek-v3"
	Gate   router.Gate   // routing method, shape, scaling factor; no correction bias
	Layout router.Layout // which rank owns which expert
	Mode   router.Mode   // DEP or TEP; "" is DEP
	Seed   uint64        // for plans that draw random numbers
	DType  DType         // element type of the logits; "" is float32
}

// withDefaults fills the fields that may be left empty and checks the rest.
func (s Spec) withDefaults() (Spec, error) {
	s.DType, s.Mode, s.Gate.Scale = cmp.Or(s.DType, Float32), cmp.Or(s.Mode, router.DEP), cmp.Or(s.Gate.Scale, 1)
	_, dtypeErr := ParseDType(string(s.DType))
	_, modeErr := router.ParseMode(string(s.Mode))
	shape, wrong := s.Gate.Shape, cmp.Or(dtypeErr, modeErr, s.Gate.Validate())
	refused := func(format string, args ...any) (Spec, error) {
		return s, fmt.Errorf("%w: "+format, append([]any{ErrSpec}, args...)...)
	}
	switch {
	case s.Model == "":
		return refused("want a model name, have none")
	case shape.Experts > maxExperts:
		return refused("want at most %d experts, have %d", maxExperts, shape.Experts)
	case wrong != nil:
		return refused("%w", wrong)
	case s.Gate.Bias != nil:
		return refused("want no correction bias: each layer has its own, and the logits outweigh most (see largestBias)")
	case s.Layout.Ranks() > maxRanks:
		return refused("want at most %d ranks, have %d", maxRanks, s.Layout.Ranks())
	case s.Layout.Ranks()*shape.TopK > maxSlots:
		return refused("want at most %d ranks × top-k, have %d × %d", maxSlots, s.Layout.Ranks(), shape.TopK)
	case s.Layout.Experts() != shape.Experts:
		return refused("a layout of %d experts for a gate of %d", s.Layout.Experts(), shape.Experts)
	}
	return s, nil
}

// problem is what a plan has to solve for so many tokens on every rank; for AnyTokens
// none, which do not matter then.
func (s Spec) problem(tokens int) plan.Problem {
	return plan.Problem{Shape: s.Gate.Shape, Layout: s.Layout, Mode: s.Mode,
		Tokens: slices.Repeat([]int{max(0, tokens)}, s.Layout.Ranks())}
}

// planned is a plan for one batch, and the rows that its entries have.
type planned struct {
	plan.Plan // its name alone, without a version, where it could not be made
	batch
}

// batch is the entries of one plan and batch size.
type batch struct {
	plan   string // without a version
	tokens int    // of every rank; AnyTokens
}

// plan makes the plan of a batch. The error wraps ErrSpec.
func (s Spec) plan(b batch, counts [][]float64) (p planned, err error) {
	p, name, tokens := planned{plan.Plan{Name: b.plan}, b}, b.plan, b.tokens
	switch {
	case !plan.Drawn(name) && !slices.Contains(plan.Names(), name): // an engine's sets experts behind the router
		return p, fmt.Errorf("%w: want a plan that logits can carry: %s, target:RATIO or recorded:FILE, have %q%s",
			ErrSpec, strings.Join(plan.Names(), ", "), name, router.Near(name, plan.Names()))
	case tokens == AnyTokens && !plan.AnyTokens(name):
		return p, fmt.Errorf("%w: want a number of tokens for the plan %s, which is another one for each", ErrSpec, name)
	case tokens < AnyTokens || tokens > MaxTokens:
		return p, fmt.Errorf("%w: want 0 to %d tokens per rank, have %d", ErrSpec, MaxTokens, tokens)
	}
	made, err := plan.New(name, s.problem(tokens), plan.Options{Seed: s.Seed, Method: s.Gate.Method, Counts: counts})
	if err != nil {
		return p, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	if p.Plan = made; tokens != AnyTokens {
		p.Extent = plan.Extent{Rows: tokens, Layers: 1}
	}
	return p, nil
}
