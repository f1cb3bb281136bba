package logits

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
)

// ErrSpec is wrapped by the errors about specs that no cache can serve.
var ErrSpec = errors.New("impossible logits spec")

// What an entry may claim is bounded before memory and time are spent on it: a file
// of a few bytes can name any shape. Planning takes sources × experts of memory, and a
// time that grows with the slots of a step.
const (
	maxExperts = 1 << 12
	maxRanks   = 1 << 10
	maxSlots   = 1 << 15 // of one token of every rank
	// MaxTokens is the most tokens of one rank.
	MaxTokens = 1 << 24
)

// CommonTokens are the batch sizes, in tokens per rank, that TensorRT-LLM
// prepares when a model with balanced routing starts: 22 of them, 41,215 tokens
// together (tensorrt_llm/_torch/moe/fused_moe/routing.py). The caller owns the slice.
func CommonTokens() []int {
	return []int{
		1, 2, 4, 8, 16, 32, 64, 128, 256, 384, 512, 640, 768, 1024,
		1536, 2048, 3072, 4096, 5120, 6144, 7168, 8192,
	}
}

// Spec is everything that a family of entries depends on but rank and batch size.
// Two specs that differ in any field never share an entry.
type Spec struct {
	Model  string        // the name reports show, such as "deepseek-v3"
	Gate   router.Gate   // routing method, shape, scaling factor, correction bias
	Layout router.Layout // which rank owns which expert
	Mode   router.Mode   // DEP or TEP; "" is DEP
	Layer  int           // the plan's phase; layer 0 is unshifted
	Plan   string        // name of the plan as plan.New takes it; "" is the diagonal one
	Seed   uint64        // of the plan, where it is random
	DType  DType         // element type of the logits; "" is float32

	text identityTexts
}

// withDefaults fills the fields that may be left empty and checks the rest.
func (s Spec) withDefaults() (Spec, error) {
	s.Plan, s.DType, s.Mode = cmp.Or(s.Plan, plan.Names()[0]), cmp.Or(s.DType, Float32), cmp.Or(s.Mode, router.DEP)
	s.Gate.Scale = cmp.Or(s.Gate.Scale, 1)
	_, dtypeErr := ParseDType(string(s.DType))
	_, modeErr := router.ParseMode(string(s.Mode))
	shape := s.Gate.Shape
	switch {
	case s.Model == "":
		return s, fmt.Errorf("%w: want a model name, have none", ErrSpec)
	case dtypeErr != nil:
		return s, fmt.Errorf("%w: %w", ErrSpec, dtypeErr)
	case modeErr != nil:
		return s, fmt.Errorf("%w: %w", ErrSpec, modeErr)
	case shape.Experts > maxExperts:
		return s, fmt.Errorf("%w: want at most %d experts, have %d", ErrSpec, maxExperts, shape.Experts)
	case s.Layout.Ranks() > maxRanks:
		return s, fmt.Errorf("%w: want at most %d ranks, have %d", ErrSpec, maxRanks, s.Layout.Ranks())
	case s.Layout.Ranks()*shape.TopK > maxSlots:
		return s, fmt.Errorf("%w: want at most %d ranks × top-k, have %d × %d", ErrSpec, maxSlots, s.Layout.Ranks(),
			shape.TopK)
	case s.Layout.Experts() != shape.Experts:
		return s, fmt.Errorf("%w: a layout of %d experts for a gate of %d", ErrSpec, s.Layout.Experts(), shape.Experts)
	case s.Layer < 0:
		return s, fmt.Errorf("%w: want layer 0 or more, have %d", ErrSpec, s.Layer)
	case slices.Contains(plan.Peers(), s.Plan):
		return s, fmt.Errorf("%w: want one of the plans %s, have %s, whose engine sets experts behind the router",
			ErrSpec, strings.Join(plan.Names(), ", "), s.Plan)
	}
	if err := s.Gate.Validate(); err != nil {
		return s, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	s.text = identityTexts{bias: biasHash(s.Gate.Bias), layout: layoutText(s.Layout)}
	return s, nil
}

// problem is what the plan has to solve for so many tokens on every rank; for
// AnyTokens none, which do not matter then.
func (s Spec) problem(tokens int) plan.Problem {
	return plan.Problem{Shape: s.Gate.Shape, Layout: s.Layout, Mode: s.Mode, Layer: s.Layer,
		Tokens: slices.Repeat([]int{max(0, tokens)}, s.Layout.Ranks())}
}

// checkEntry is an ErrSpec for a rank that the layout does not have, or a number of
// tokens that no rank can hold.
func (s Spec) checkEntry(rank, tokens int) error {
	if last := s.Layout.Ranks() - 1; rank < 0 || rank > last {
		return fmt.Errorf("%w: want a rank from 0 to %d, have %d", ErrSpec, last, rank)
	}
	if tokens == AnyTokens && !plan.AnyTokens(s.Plan) {
		return fmt.Errorf("%w: want a number of tokens for the plan %s, which is another one for each", ErrSpec, s.Plan)
	}
	if tokens < AnyTokens || tokens > MaxTokens {
		return fmt.Errorf("%w: want 0 to %d tokens per rank, have %d", ErrSpec, MaxTokens, tokens)
	}
	return nil
}

// plan is the plan for so many tokens on every rank.
func (s Spec) plan(tokens int) (plan.Plan, error) {
	p, err := plan.New(s.Plan, s.problem(tokens), plan.Options{Seed: s.Seed, Method: s.Gate.Method})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	return p, nil
}

// AnyTokens is the batch size of a periodic entry, which serves any number of tokens:
// token t of layer l takes row (t + l·Period) mod Rows.
const AnyTokens = router.NoID

// extent is how many tokens an entry is for, and how many rows it has: one for each
// token, or those of the plan's table.
type extent struct {
	tokens       int // of every rank; AnyTokens
	rows, period int // period is 0 for an entry of one batch size
}

// extent is that of an entry for so many tokens. Only plans for any number of them
// have periodic entries, see checkEntry.
func (s Spec) extent(p plan.Plan, tokens int) extent {
	if table, ok := p.(plan.Periodic); ok && tokens == AnyTokens {
		return extent{AnyTokens, table.Rows(), table.Period()}
	}
	return extent{tokens: tokens, rows: tokens}
}

// anyTokens stands in the metadata of periodic entries for the number of tokens.
const anyTokens = "any"

// plans keeps plans for all who need one: making it can cost as much as filling
// every rank once. The zero value is ready, also for several goroutines.
type plans struct {
	made sync.Map // from planKey to a function that makes the plan once
}

type planKey struct {
	family string // of entries; "" where there is one only
	tokens int
}

// of returns the spec's plan for so many tokens on every rank. Those who ask for one
// that is being made wait for it; others do not.
func (p *plans) of(family string, s Spec, tokens int) (plan.Plan, error) {
	key := planKey{family, tokens}
	if plan.AnyTokens(s.Plan) {
		key.tokens = 0
	}
	making, _ := p.made.LoadOrStore(key, sync.OnceValues(func() (plan.Plan, error) { return s.plan(key.tokens) }))
	return making.(func() (plan.Plan, error))()
}
