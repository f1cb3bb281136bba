package plan

import (
	"fmt"

	"github.com/moebalance/moebalance/router"
)

// flatStream is TensorRT-LLM's assignment without groups. With n = t·k + s for
// slot s of token t:
//
//	expert = (n mod R)·L + ⌊n/R⌋ mod L
//
// Its second generation adds the sender's rank to n. It knows neither layers nor
// modes, and in tep mode the second one's ranks disagree about their tokens.
//
// Source: create_renormalize_expert_load_balanced_logits (first generation) and
// the flat planner (second) of tensorrt_llm/_torch/modules/fused_moe/routing.py.
type flatStream struct {
	problem Problem
	name    string
	perRank int
	rotated bool // start at the sender's rank
}

// newReference makes the first or second generation's plan. It refuses the layouts
// that the reference refuses.
func newReference(p Problem, o Options, second bool) (Plan, error) {
	perRank, ok := p.Layout.PerRank()
	switch {
	case !ok:
		return nil, fmt.Errorf(
			"%w: want a contiguous layout with equally many experts on each rank, as the reference does; have %d experts on %d ranks",
			router.ErrShape, p.Layout.Experts(), p.Layout.Ranks())
	case !second:
		return &flatStream{problem: p, name: "trtllm-gen1/1", perRank: perRank}, nil
	case o.Method == router.DeepSeekV3 || (o.Method == "" && p.Shape.Grouped()):
		return newBeam(p, perRank)
	}
	return &flatStream{problem: p, name: "trtllm-gen2/1", perRank: perRank, rotated: true}, nil
}

func (f *flatStream) Name() string { return f.name }

func (f *flatStream) Fill(dst []int32, rank int) {
	checkFill(f.problem, dst, rank)
	ranks, n := f.problem.Layout.Ranks(), 0
	if f.rotated {
		n = rank
	}
	for i := range dst {
		dst[i] = int32(n%ranks*f.perRank + n/ranks%f.perRank)
		n++
	}
}
