package plan

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// dealt hands the slots of a rank to the ranks in turn, and on each rank to its experts
// in turn. With n = t·k + s + start for slot s of token t:
//
//	expert = (n mod R)·L + ⌊n/R⌋ mod L
//
// TensorRT-LLM's first generation starts at 0; its second one, without groups, at the
// sender's rank. They know neither layers nor modes, and in tep mode the second one's
// ranks disagree about their tokens. SGLang starts at the layer, and where ranks have
// tokens of their own one rank and one expert further on each.
//
// Source: create_renormalize_expert_load_balanced_logits (first generation) and
// the flat planner (second) of tensorrt_llm/_torch/moe/fused_moe/routing.py;
// _simulate_balanced_routing of sglang/srt/layers/moe/topk.py, 0.5.23.
type dealt struct {
	problem Problem
	name    string
	perRank int
	start   func(rank int) int
}

// newReference makes TensorRT-LLM's first or second generation's plan. It refuses the
// layouts that the reference refuses.
func newReference(p Problem, o Options, second bool) (Plan, error) {
	perRank, ok := p.Layout.PerRank()
	switch {
	case !ok:
		return nil, fmt.Errorf(
			"%w: want a contiguous layout with equally many experts on each rank, as the reference does; have %d experts on "+
				"%d ranks",
			router.ErrShape, p.Layout.Experts(), p.Layout.Ranks())
	case !second:
		return &dealt{p, "trtllm-gen1/1", perRank, func(int) int { return 0 }}, nil
	case o.Method == router.DeepSeekV3 || (o.Method == "" && p.Shape.Grouped()):
		return newBeam(p, perRank)
	}
	return &dealt{p, "trtllm-gen2/1", perRank, func(rank int) int { return rank }}, nil
}

func (d *dealt) Name() string { return d.name }

func (d *dealt) Fill(dst []int32, rank int) {
	checkFill(d.problem, dst, rank)
	ranks, n := d.problem.Layout.Ranks(), d.start(rank)
	for i := range dst {
		dst[i] = int32(n%ranks*d.perRank + n/ranks%d.perRank)
		n++
	}
}

// uniform chooses for every token k distinct experts at random, every set of k
// equally likely; with groups first TopKGroups distinct groups, then k distinct
// experts of those. The numbers come from PCG seeded with the seed and with the
// source and layer, so ranks and layers are independent; a number below n is the
// high word of a 64-bit product, whose bias of n/2⁶⁴ nobody can measure.
type uniform struct {
	problem Problem
	name    string
	seed    uint64
}

// Name holds the seed, such as "uniform/1 seed=7".
func (u *uniform) Name() string { return fmt.Sprintf("%s/1 seed=%d", u.name, u.seed) }

// random are the numbers of a rank's source.
func (u *uniform) random(rank int) *rand.PCG {
	return rand.NewPCG(u.seed, uint64(u.problem.Layer)<<32|uint64(u.problem.source(rank)))
}

func (u *uniform) Fill(dst []int32, rank int) {
	checkFill(u.problem, dst, rank)
	shape, random := u.problem.Shape, u.random(rank)
	groups, size := make([]int32, shape.GroupLimit()), int32(shape.GroupSize())
	for ; len(dst) > 0; dst = dst[shape.TopK:] {
		token := dst[:shape.TopK]
		if shape.Grouped() {
			sample(groups, shape.Groups, random)
		}
		sample(token, shape.Reachable(), random)
		for i, x := range token {
			token[i] = groups[x/size]*size + x%size
		}
	}
}

// sample fills dst with distinct numbers below n, every set equally likely:
// Floyd's method (Bentley and Floyd, CACM 30(9), 1987). The order is not
// uniform; nothing here depends on it.
func sample(dst []int32, n int, random *rand.PCG) {
	for i := range dst {
		last := n - len(dst) + i
		high, _ := bits.Mul64(random.Uint64(), uint64(last+1))
		pick := int32(high)
		if slices.Contains(dst[:i], pick) {
			pick = int32(last)
		}
		dst[i] = pick
	}
}

// striding is SGLang's round robin before 0.5.22. Slot s of token t of layer l takes expert
//
//	(n + l + s·⌊E/k⌋) mod E
//
// with n = t on every rank alike, and from 0.5.19 on the number of the token among those of
// all ranks, as if all held as many.
//
// Source: _make_round_robin_expert_ids (0.5.16) and _simulate_balanced_routing (0.5.19) of
// sglang/srt/layers/moe/topk.py.
type striding struct {
	problem Problem
	name    string
	global  bool
}

func (s *striding) Name() string { return s.name }

func (s *striding) Fill(dst []int32, rank int) {
	checkFill(s.problem, dst, rank)
	experts, k := s.problem.Shape.Experts, s.problem.Shape.TopK
	for i := range dst {
		n := i / k
		if s.global {
			n = n*len(s.problem.sources()) + s.problem.source(rank)
		}
		dst[i] = int32((n + s.problem.Layer + i%k*(experts/k)) % experts)
	}
}

// newSGLang makes SGLang's round robin since 0.5.22. It deals over blocks of the experts'
// numbers, whatever the layout.
func newSGLang(p Problem, _ Options) (Plan, error) {
	ranks := p.Layout.Ranks()
	if p.Shape.Experts%ranks != 0 {
		return nil, fmt.Errorf("%w: want equally many experts on each rank, as SGLang does; have %d experts on %d ranks",
			router.ErrShape, p.Shape.Experts, ranks)
	}
	return &dealt{p, "sglang-gen3/1", p.Shape.Experts / ranks, func(rank int) int {
		return p.Layer + p.source(rank)*(1+ranks)
	}}, nil
}

// newVLLMUniform makes what VLLM_MOE_ROUTING_SIMULATION_STRATEGY=uniform_random does where
// it sets ids: "uniform" without groups, which it does not know.
func newVLLMUniform(p Problem, o Options) (Plan, error) {
	p.Shape.Groups, p.Shape.TopKGroups = 0, 0
	return &uniform{p, "vllm-uniform", o.Seed}, nil
}

// normal is VLLM_MOE_ROUTING_SIMULATION_STRATEGY=normal_routing: every slot on its own
// takes expert ⌊E·σ(z)⌋ of a standard normal number z, so that a token may have an expert
// twice.
//
// Source: DistributionBasedRouting of
// vllm/model_executor/layers/fused_moe/router/routing_simulator_router.py, 0.33.0.
type normal struct{ uniform }

func (n *normal) Fill(dst []int32, rank int) {
	checkFill(n.problem, dst, rank)
	random, experts := rand.New(n.random(rank)), n.problem.Shape.Experts
	for i := range dst {
		share := 1 / (1 + math.Exp(-random.NormFloat64()))
		dst[i] = int32(min(int(share*float64(experts)), experts-1))
	}
}
