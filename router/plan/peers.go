package plan

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/moebalance/moebalance/router"
)

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
