package plan

import (
	"fmt"

	"github.com/moebalance/moebalance/router"
)

// number is how a switch numbers the slots of all ranks before it gives them experts: t·k + s for
// slot s of token t where all ranks begin at 0.
type number func(p Problem, rank, t, s int) int

// maker makes a plan of a name.
type maker = func(name string, p Problem, o Options) (Plan, error)

// strided is the plan of a switch whose slot of number n takes expert n mod E, whatever the layout.
func strided(n number) maker {
	return func(name string, p Problem, _ Options) (Plan, error) {
		return p.byToken(name+"/1", func(rank int) func([]int32, int) {
			return func(token []int32, t int) {
				for s := range token {
					token[s] = int32(n(p, rank, t, s) % p.Shape.Experts)
				}
			}
		}), nil
	}
}

// dealt is the plan of a switch that deals slots to the ranks in turn, and on each
// rank to its experts in turn: with R ranks of L experts, the slot of number n takes expert
//
//	(n mod R)·L + ⌊n/R⌋ mod L
//
// It refuses ranks with unequally many experts, as the engines do.
func dealt(n number) maker {
	return func(name string, p Problem, o Options) (Plan, error) {
		ranks, perRank := p.Layout.Ranks(), p.Shape.Experts/p.Layout.Ranks()
		if p.Shape.Experts%ranks != 0 {
			return Plan{}, fmt.Errorf("%w: want equally many experts on each rank, as the engine does; have %d experts on %d "+
				"ranks", router.ErrShape, p.Shape.Experts, ranks)
		}
		return strided(func(p Problem, rank, t, s int) int {
			i := n(p, rank, t, s)
			return i%ranks*perRank + i/ranks%perRank
		})(name, p, o)
	}
}

// gen2 is TensorRT-LLM's second generation: slots dealt from the sender's rank on, or the beam search
// where groups limit tokens. It knows neither layers nor modes: in tep mode its ranks disagree about
// their tokens.
func gen2(name string, p Problem, o Options) (Plan, error) {
	if o.Method == router.DeepSeekV3 || o.Method == "" && p.Shape.Grouped() {
		return newBeam(p), nil
	}
	return dealt(func(p Problem, rank, t, s int) int { return t*p.Shape.TopK + s + rank })(name, p, o)
}

// stride is how far apart SGLang puts the experts of a token.
func stride(p Problem, s int) int { return s * (p.Shape.Experts / p.Shape.TopK) }

// peers are the switches of engines that set the ids of experts behind the router. Sources:
// sglang/srt/layers/moe/topk.py of 0.5.16 (gen1, _make_round_robin_expert_ids), of 0.5.19 (gen2)
// and of 0.5.23 (gen3, _simulate_balanced_routing); tensorrt_llm/tools/layer_wise_benchmarks;
// ROCm/ATOM #1755; torchtitan #1614; routing_simulator_router.py of vLLM 0.33.0.
var peers = []planner{
	{name: "trtllm-layerwise", make: dealt(func(p Problem, rank, t, s int) int { // numbers all tokens, rank by rank
		return (p.source(rank)*p.Tokens[0]+t)*p.Shape.TopK + s
	})},
	{name: "sglang-gen1", make: strided(func(p Problem, _, t, s int) int { return t + stride(p, s) })},
	{name: "sglang-gen2", make: strided(func(p Problem, rank, t, s int) int { // as if all ranks held as many tokens
		return t*len(p.sources()) + p.source(rank) + stride(p, s)
	})},
	{name: "sglang-gen3", make: dealt(func(p Problem, rank, t, s int) int {
		return t*p.Shape.TopK + s + p.source(rank)*(1+p.Layout.Ranks())
	})},
	{name: "sglang-uniform", make: apart},
	{name: "vllm-uniform", make: func(name string, p Problem, o Options) (Plan, error) {
		p.Shape.Groups, p.Shape.TopKGroups = 0, 0 // it knows none
		return uniform(name, p, o)
	}},
	{name: "vllm-normal", make: normal},
	{name: "atom", make: dealt(func(p Problem, rank, t, s int) int { // tokens of all ranks in turn
		return (p.source(rank)+t*len(p.sources()))*p.Shape.TopK + s
	})},
	{name: "torchtitan", make: strided(func(p Problem, _, t, s int) int { return t*p.Shape.TopK + s })},
}
