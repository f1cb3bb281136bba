package plan

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/moebalance/moebalance/router"
)

// formula is a plan in which slot s of token t of a rank takes expert(rank, t, s).
type formula struct {
	problem Problem
	name    string
	expert  func(rank, t, s int) int
}

func (f *formula) Name() string { return f.name }

func (f *formula) Fill(dst []int32, rank int) {
	checkFill(f.problem, dst, rank)
	k := f.problem.Shape.TopK
	for i := range dst {
		dst[i] = int32(f.expert(rank, i/k, i%k))
	}
}

// number is how a switch numbers the slots of all ranks before it deals them out: t·k + s for
// slot s of token t where all ranks begin at 0.
type number func(p Problem, rank, t, s int) int

// dealing is the planner of a switch that deals slots to the ranks in turn, and on each
// rank to its experts in turn: with R ranks of L experts, the slot of number n takes expert
//
//	(n mod R)·L + ⌊n/R⌋ mod L
//
// It refuses ranks with unequally many experts, as the engines do.
func dealing(name string, n number) planner {
	return planner{name, func(p Problem, _ Options) (Plan, error) {
		ranks, perRank := p.Layout.Ranks(), p.Shape.Experts/p.Layout.Ranks()
		if p.Shape.Experts%ranks != 0 {
			return nil, fmt.Errorf("%w: want equally many experts on each rank, as the engine does; have %d experts on %d "+
				"ranks", router.ErrShape, p.Shape.Experts, ranks)
		}
		return &formula{p, name + "/1", func(rank, t, s int) int {
			i := n(p, rank, t, s)
			return i%ranks*perRank + i/ranks%perRank
		}}, nil
	}}
}

// striding is the planner of a switch that takes expert n mod E for the slot of number n,
// whatever the layout.
func striding(name string, n number) planner {
	return planner{name, func(p Problem, _ Options) (Plan, error) {
		return &formula{p, name + "/1", func(rank, t, s int) int { return n(p, rank, t, s) % p.Shape.Experts }}, nil
	}}
}

// contiguous is a planner that refuses any layout but equal blocks of experts, as
// TensorRT-LLM does.
func contiguous(inner planner) planner {
	return planner{inner.name, func(p Problem, o Options) (Plan, error) {
		if _, ok := p.Layout.PerRank(); !ok {
			return nil, fmt.Errorf("%w: want a contiguous layout with equally many experts on each rank, as the reference "+
				"does; have %d experts on %d ranks", router.ErrShape, p.Layout.Experts(), p.Layout.Ranks())
		}
		return inner.make(p, o)
	}}
}

// flat is TensorRT-LLM's second generation without groups, which begins at the sender's rank.
var flat = dealing("trtllm-gen2", func(p Problem, rank, t, s int) int { return t*p.Shape.TopK + s + rank })

// gen2 is TensorRT-LLM's second generation: flat, or the beam search where groups limit
// tokens. It knows neither layers nor modes: in tep mode its ranks disagree about their tokens.
func gen2(p Problem, o Options) (Plan, error) {
	if o.Method == router.DeepSeekV3 || o.Method == "" && p.Shape.Grouped() {
		perRank, _ := p.Layout.PerRank()
		return newBeam(p, perRank)
	}
	return flat.make(p, o)
}

// stride is how far apart SGLang puts the experts of a token.
func stride(p Problem, s int) int { return s * (p.Shape.Experts / p.Shape.TopK) }

// peers are the switches of engines that set the ids of experts behind the router. Sources:
// sglang/srt/layers/moe/topk.py of 0.5.16 (gen1, _make_round_robin_expert_ids), of 0.5.19 (gen2)
// and of 0.5.23 (gen3, _simulate_balanced_routing); tensorrt_llm/tools/layer_wise_benchmarks;
// ROCm/ATOM #1755; torchtitan #1614; routing_simulator_router.py of vLLM 0.33.0.
var peers = []planner{
	dealing("trtllm-layerwise", func(p Problem, rank, t, s int) int { // numbers the tokens of all ranks, rank by rank
		return (p.source(rank)*p.Tokens[0]+t)*p.Shape.TopK + s
	}),
	striding("sglang-gen1", func(p Problem, _, t, s int) int { return t + p.Layer + stride(p, s) }),
	striding("sglang-gen2", func(p Problem, rank, t, s int) int { // as if all ranks held as many tokens
		return t*len(p.Sources()) + p.source(rank) + p.Layer + stride(p, s)
	}),
	dealing("sglang-gen3", func(p Problem, rank, t, s int) int {
		return t*p.Shape.TopK + s + p.Layer + p.source(rank)*(1+p.Layout.Ranks())
	}),
	{"sglang-uniform", func(p Problem, o Options) (Plan, error) {
		return &strided{uniform{p, "sglang-uniform", o.Seed}}, nil
	}},
	{"vllm-uniform", func(p Problem, o Options) (Plan, error) { // knows no groups
		p.Shape.Groups, p.Shape.TopKGroups = 0, 0
		return &uniform{p, "vllm-uniform", o.Seed}, nil
	}},
	{"vllm-normal", func(p Problem, o Options) (Plan, error) {
		return &normal{uniform{p, "vllm-normal", o.Seed}}, nil
	}},
	dealing("atom", func(p Problem, rank, t, s int) int { // tokens of all ranks in turn
		return (p.source(rank)+t*len(p.Sources()))*p.Shape.TopK + s
	}),
	striding("torchtitan", func(p Problem, _, t, s int) int { return t*p.Shape.TopK + s }),
}

// strided is SGLANG_SIMULATE_UNIFORM_EXPERTS: a random first expert for each token, the
// others a stride apart.
type strided struct{ uniform }

func (r *strided) Fill(dst []int32, rank int) {
	checkFill(r.problem, dst, rank)
	random, first, k := rand.New(r.random(rank)), 0, r.problem.Shape.TopK
	for i := range dst {
		if i%k == 0 {
			first = random.IntN(r.problem.Shape.Experts)
		}
		dst[i] = int32((first + stride(r.problem, i%k)) % r.problem.Shape.Experts)
	}
}

// normal is vLLM's normal_routing: every slot on its own takes expert ⌊E·σ(z)⌋ of a standard
// normal number z, so that a token may have an expert twice.
type normal struct{ uniform }

func (n *normal) Fill(dst []int32, rank int) {
	checkFill(n.problem, dst, rank)
	random, experts := rand.New(n.random(rank)), n.problem.Shape.Experts
	for i := range dst {
		share := 1 / (1 + math.Exp(-random.NormFloat64()))
		dst[i] = int32(min(int(share*float64(experts)), experts-1))
	}
}
