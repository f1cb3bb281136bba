package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// Problem is what a plan has to solve: the routing of one layer in one step. Its parts fit each other:
// a valid shape, a layout of its experts, tokens of 0 and more for each rank of it.
type Problem struct {
	Shape  router.Shape
	Layout router.Layout
	Mode   router.Mode
	// Tokens is the number of tokens each rank holds, one entry per rank,
	// unequal ones and zeros included. In TEP mode all entries are equal and
	// mean the same tokens.
	Tokens []int
}

// Plan is a deterministic assignment of slots to experts.
type Plan struct {
	// Name is the algorithm with its version, such as "diagonal/2": the same
	// name and problem give the same assignment for ever.
	Name string
	// Extent is how a periodic plan takes any number of tokens from the rows of one table:
	// Fill takes as many rows as it has room for, and begins again behind the last. It is
	// zero where a plan depends on the numbers of tokens.
	Extent Extent
	// Fill writes the experts of every token of a rank, row-major
	// [Tokens[rank], TopK], into dst, which must have exactly that length.
	// It may be called for any rank in any order, also from several goroutines.
	Fill func(dst []int32, rank int)
}

// Extent is how the layers and tokens of a periodic plan take the rows of its table. Token t
// of layer l takes row
//
//	(l mod Layers)·n + (t + l·Period) mod n
//
// of n = Rows/Layers for a layer: in a balanced plan, which has one table for all layers,
// row (t + l·Period) mod Rows.
type Extent struct {
	Rows   int `json:"rows"`
	Period int `json:"period"` // steps after which loads are level; 0 where none is known
	Layers int `json:"layers"`
}

// byToken is a plan that fills the tokens of a rank one after another.
func (p Problem) byToken(name string, begin func(rank int) (fill func(token []int32, t int))) Plan {
	return Plan{Name: name, Fill: func(dst []int32, rank int) {
		fill, t := begin(rank), 0
		for token := range slices.Chunk(dst, p.Shape.TopK) {
			fill(token, t)
			t++
		}
	}}
}

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

// planner is a way to plan.
type planner struct {
	name   string
	make   maker
	blocks bool // refuses any layout but equal blocks of experts, as TensorRT-LLM does
}

var planners = []planner{
	{name: "diagonal", make: func(_ string, p Problem, _ Options) (Plan, error) { return newTable(p).plan(p), nil }},
	{name: "trtllm-gen1", blocks: true, make: dealt(func(p Problem, _, t, s int) int { return t*p.Shape.TopK + s })},
	{name: "trtllm-gen2", blocks: true, make: gen2},
	{name: "uniform", make: uniform},
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

// find is the planner of that name; one that makes nothing for an unknown name.
func find(name string) planner {
	if Drawn(name) {
		return planner{name: name, make: newDrawn}
	}
	known := append(slices.Concat(planners, peers), planner{name: name})
	return known[slices.IndexFunc(known, func(k planner) bool { return k.name == name })]
}

// AnyTokens reports whether a plan does not depend on the numbers of tokens: made for
// none it may fill any number of them on any rank.
func AnyTokens(name string) bool { return name == planners[0].name || Drawn(name) }

// New makes the named plan for a problem: one of Names and Peers, or a drawn one.
func New(name string, p Problem, o Options) (plan Plan, err error) {
	k := find(name)
	_, inBlocks := p.Layout.PerRank()
	switch {
	case k.make == nil:
		all := slices.Concat(Names(), Peers())
		return plan, fmt.Errorf("unknown plan %q: want one of %s%s", name, strings.Join(all, ", "), router.Near(name, all))
	case k.blocks && !inBlocks:
		err = fmt.Errorf("%w: want a contiguous layout with equally many experts on each rank, as the reference "+
			"does; have %d experts on %d ranks", router.ErrShape, p.Layout.Experts(), p.Layout.Ranks())
	default:
		plan, err = k.make(name, p, o)
	}
	if err != nil {
		return plan, fmt.Errorf("planning %q: %w", name, err)
	}
	return plan, nil
}

// sources are the number of tokens of each source: one source per rank in dep
// mode, a single one in tep mode, where all ranks hold its tokens.
func (p Problem) sources() []int {
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
	for _, t := range p.sources() {
		n += t
	}
	return n
}
