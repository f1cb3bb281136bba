package kernel

import (
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/steps"
)

// words are looked for in names in lower case, several times as fast as by an expression.
type words []string

func (w words) in(lower string) bool {
	return slices.ContainsFunc(w, func(word string) bool { return strings.Contains(lower, word) })
}

// Words of the kernels of a backward pass, and of kernels that mix tokens and that no rule knows, of state space models
// and of linear and sparse attention.
var (
	backward = words{"bwd_", "backward", "flashattnbwd"}
	mixers   = words(strings.Fields("attention flash_attn fmha sdpa mla_ gqa_ paged_attn mqa_logits indexer linear_attn " +
		"lightning mamba ssm_ ssd_ selective_ causal_conv1d state_passing chunk_state chunk_scan chunk_cumsum chunk_fwd " +
		"chunk_gated bmm_chunk gated_delta recurrent retention wkv _gla_ _kda_"))
)

// eagerSoftmax is the softmax of attention in a framework's own operators, over more
// tokens than there are experts, and in the type of the activations.
var eagerSoftmax = regexp.MustCompile(
	`softmax_warp_forward<[^<>]*(?:BFloat16|Half)[^<>]*, ?(?:\(int\))?(?:9|1\d),|` +
		`cunn_SoftMaxForward\w*<[^<>]*(?:BFloat16|Half)`)

// marks are in the names of kernels by what these do once a step. Rotary embedding
// belongs to attention, and runs in every layer.
var marks = []struct {
	mark steps.Mark
	words
}{
	{0, words{"rotary"}},
	{steps.Transfer, words{"sendrecv"}},
	{steps.Sure, strings.Fields("embedding argmax sampl multinomial logits penalt topp_ top_p_ cos_kernel sin_kernel " +
		"slot_mapping block_table position req_to_token kv_indices")},
	{steps.Perhaps, strings.Fields("vectorized_gather indexselect distribution_ arange tensor_kernel_scan " +
		"triu_tril and_kernel_cuda allgather")},
}

// longest is how many bytes of a name are searched for words; real names have ten thousand at most.
const longest = 1 << 16

// asLaunch adds what a kernel of the name is to steps.Find.
func (c Class) asLaunch(name string) Class {
	name = name[:min(len(name), longest)]
	lower := strings.ToLower(name)
	c.Launch.Anchor = c.anchor(name, lower)
	switch anchor := c.Launch.Anchor; c.Phase {
	case PhaseUnknown, PhaseOther, PhaseCommunication: // the others are of layers
		if anchor != steps.Attention && anchor != steps.Router && anchor != steps.Backward {
			c.Launch.Mark = markOf(lower, anchor == steps.Collective)
		}
	}
	return c
}

func (c Class) anchor(name, lower string) steps.Anchor {
	switch {
	case backward.in(lower):
		return steps.Backward
	case c.GEMM || c.FusedExperts():
		return steps.ExpertGEMM
	case c.Collective:
		return steps.Collective
	case c.Phase == PhaseAttention:
		return steps.Attention
	case c.Phase == PhaseRouter || c.Launch.Anchor == steps.Router:
		return steps.Router
	case c.Phase == PhaseOther && !c.Given && (c.Library == "norms" || strings.Contains(lower, "splitkreduce")):
		return steps.Norm
	case c.Phase == PhaseOther:
		return steps.Dense
	case c.Phase != PhaseUnknown || generated.MatchString(name):
	case mixers.in(lower) || eagerSoftmax.MatchString(name):
		return steps.Attention
	}
	return steps.None
}

// markOf is the mark of a name in lower case. Of collectives, only transfers are marks,
// and gathers perhaps.
func markOf(lower string, collective bool) steps.Mark {
	for _, m := range marks {
		if m.in(lower) && (!collective || m.mark != steps.Sure) {
			return m.mark
		}
	}
	return 0
}

// generated are the fused kernels of PyTorch's compiler, but for its GEMMs.
var generated = regexp.MustCompile(`^triton_(?:poi|per|red|for|mix)_fused_`)
