package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// Options are the knobs of the plans that have some. A plan ignores the
// knobs it does not name.
type Options struct {
	Seed uint64 // of the plans that draw random numbers
	// Method tells "trtllm-gen2" which of its two planners applies: the group
	// planner for DeepSeekV3, the flat one for all others. Empty means the
	// group planner exactly when the shape has groups.
	Method router.Method
	// Counts are the slots per layer and expert that "recorded" plans follow.
	Counts [][]float64
}

type planner struct {
	name string
	make func(Problem, Options) (Plan, error)
}

var planners = []planner{
	{"diagonal", func(p Problem, _ Options) (Plan, error) { return &diagonalPlan{p, NewTable(p)}, nil }},
	contiguous(dealing("trtllm-gen1", func(p Problem, _, t, s int) int { return t*p.Shape.TopK + s })),
	contiguous(planner{"trtllm-gen2", gen2}),
	{"uniform", func(p Problem, o Options) (Plan, error) { return &uniform{p, "uniform", o.Seed}, nil }},
}

// Names lists the plans that logits can carry; the first is the default.
//
//	diagonal      ours: balanced over ranks and experts for every number of tokens
//	trtllm-gen1   TensorRT-LLM's first perfect router, no sender rank
//	trtllm-gen2   its second one, rotated by the sender rank
//	uniform       k distinct experts at random, for every token anew
func Names() []string { return names(planners) }

// Peers lists the plans of engines' switches for benchmarks, which set the ids of experts
// behind the router, whatever it scores.
//
//	trtllm-layerwise  the balanced method of TensorRT-LLM's layer-wise benchmarks
//	sglang-gen1       SGLANG_SIMULATE_ROUND_ROBIN_EXPERTS of SGLang up to 0.5.18
//	sglang-gen2       the same of 0.5.19 to 0.5.21, which numbers the tokens of all ranks
//	sglang-gen3       the same from 0.5.22 on, which deals slots to ranks
//	sglang-uniform    SGLANG_SIMULATE_UNIFORM_EXPERTS
//	vllm-uniform      VLLM_MOE_ROUTING_SIMULATION_STRATEGY=uniform_random of vLLM
//	vllm-normal       its normal_routing
//	atom              --fake-eplb of ROCm's ATOM, without groups
//	torchtitan        debug.moe_force_load_balance of torchtitan; megablocks and prime-rl do the same
func Peers() []string { return names(peers) }

func names(list []planner) (names []string) {
	for _, p := range list {
		names = append(names, p.name)
	}
	return names
}

// Seeded reports whether a plan draws random numbers.
func Seeded(name string) bool {
	return strings.HasSuffix(name, "uniform") || name == "vllm-normal" || Drawn(name)
}

// New makes the named plan for a problem: one of Names and Peers, or a drawn one.
func New(name string, p Problem, o Options) (Plan, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("planning %q: %w", name, err)
	}
	known := slices.Concat(planners, peers)
	if Drawn(name) {
		known = []planner{{name, func(p Problem, o Options) (Plan, error) { return newDrawn(name, p, o) }}}
	}
	i := slices.IndexFunc(known, func(k planner) bool { return k.name == name })
	if i < 0 {
		return nil, fmt.Errorf("unknown plan %q: want one of %s", name, strings.Join(slices.Concat(Names(), Peers()), ", "))
	}
	plan, err := known[i].make(p, o)
	if err != nil {
		return nil, fmt.Errorf("planning %q: %w", name, err)
	}
	return plan, nil
}

// AnyTokens reports whether a plan does not depend on the numbers of tokens: made for
// one problem it may fill any number of them on any rank.
func AnyTokens(name string) bool { return name == planners[0].name || Drawn(name) }

// Validate returns an error that wraps ErrShape when the parts of the problem
// contradict each other.
func (p Problem) Validate() error {
	if err := p.Shape.Validate(); err != nil {
		return err
	}
	if p.Layout.Experts() != p.Shape.Experts {
		return fmt.Errorf("%w: the layout places %d experts, the shape has %d", router.ErrShape, p.Layout.Experts(),
			p.Shape.Experts)
	}
	if _, err := router.ParseMode(string(p.Mode)); err != nil {
		return err
	}
	if len(p.Tokens) != p.Layout.Ranks() {
		return fmt.Errorf("%w: want a number of tokens for each of %d ranks, have %d numbers", router.ErrShape,
			p.Layout.Ranks(), len(p.Tokens))
	}
	for r, t := range p.Tokens {
		if t < 0 {
			return fmt.Errorf("%w: rank %d has %d tokens", router.ErrShape, r, t)
		}
		if p.Mode == router.TEP && t != p.Tokens[0] {
			return fmt.Errorf("%w: in tep mode all ranks hold the same tokens, but rank %d has %d and rank 0 has %d",
				router.ErrShape, r, t, p.Tokens[0])
		}
	}
	if p.Layer < 0 {
		return fmt.Errorf("%w: want a layer of 0 or more, have %d", router.ErrShape, p.Layer)
	}
	return nil
}

// Sources are the number of tokens of each source: one source per rank in dep
// mode, a single one in tep mode, where all ranks hold its tokens.
func (p Problem) Sources() []int {
	if p.Mode == router.TEP {
		return p.Tokens[:1]
	}
	return p.Tokens
}

// source is the source whose tokens a rank holds.
func (p Problem) source(rank int) int {
	if p.Mode == router.TEP {
		return 0
	}
	return rank
}

// total is N, the different tokens of all ranks together.
func (p Problem) total() int {
	n := 0
	for _, t := range p.Sources() {
		n += t
	}
	return n
}

// checkFill panics when a caller hands Fill the wrong room or rank.
func checkFill(p Problem, dst []int32, rank int) {
	if want := p.Tokens[rank] * p.Shape.TopK; len(dst) != want {
		panic(fmt.Sprintf("plan: filling the plan of rank %d: want room for %d ids, have %d", rank, want, len(dst)))
	}
}
