package plan

import (
	"fmt"

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
