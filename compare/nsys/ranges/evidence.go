// Package ranges reads what the ranges and operators around a launch say of it: the step, the
// layer, the expert and the phase, and of a step the arm and the batch. What kernels' own
// names say is package kernel's business, and what their order says package infer's.
package ranges

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/nsys/kernel"
)

// Evidence is what placed a kernel in its phase, strongest first. Ranges of the user
// and of the captures in testdata name phases on purpose; those of engines and
// frameworks name modules. The operator of the framework that launched a kernel is
// asked before the kernel's name where it does one thing only, and after it where it
// does several.
type Evidence uint8

const (
	ByNothing Evidence = iota
	ByUser             // a rule given for names of kernels
	ByRange
	ByFramework
	ByOperator
	ByName
	ByPosition // between the anchors of an expert block, see placement
	Evidences  // how many there are
)

func (e Evidence) String() string {
	return [...]string{"none", "--phase", "range", "framework range", "operator", "name", "position"}[e]
}

// operatorRule is what an operator's name says of the kernels it launches.
type operatorRule struct {
	re     *regexp.Regexp
	phase  kernel.Phase
	wide   bool // it launches kernels of several phases, whose names are better evidence
	source string
}

// operatorRules are tried in order. What none of them matches says nothing.
var operatorRules = []operatorRule{
	{regexp.MustCompile(`^aten::_(?:scaled_)?grouped_mm`), kernel.PhaseExperts, false, "torch native_functions.yaml"},
	{regexp.MustCompile(`^(?:_moe_C|sgl_kernel|vllm)::(?:topk_(?:softmax|sigmoid)|grouped_topk|moe_fused_gate|` +
		`biased_grouped_topk)`), kernel.PhaseRouter, false, "vLLM csrc/moe/torch_bindings.cpp, sgl-kernel"},
	{regexp.MustCompile(`^(?:_moe_C|sgl_kernel)::(?:batched_)?(?:moe_align_block_size|moe_permute|shuffle_rows|` +
		`get_moe_prepare_input|prepare_moe_input)`), kernel.PhaseDispatch, false,
		"vLLM csrc/moe/torch_bindings.cpp, sgl-kernel"},
	{regexp.MustCompile(`^(?:_moe_C|sgl_kernel)::(?:moe_sum|moe_unpermute|moe_sum_reduce|apply_shuffle_mul_sum)`),
		kernel.PhaseCombine, false, "vLLM csrc/moe/torch_bindings.cpp, sgl-kernel"},
	{regexp.MustCompile(`^(?:_moe_C|sgl_kernel|_C)::(?:\w*moe\w*gemm|cutlass_\w*moe_mm|\w*grouped_mm)`),
		kernel.PhaseExperts,
		false, "vLLM csrc/moe, csrc/quantization"},
	{regexp.MustCompile(`^(?:record_param_comms$|nccl:|c10d::|_c10d_functional::|_C_custom_ar::|(?:vllm|sglang|` +
		`sgl_kernel)::(?:\w*all_?reduce|all_gather|reduce_scatter|all_to_all))`), kernel.PhaseCommunication, false,
		"torch c10d ParamCommsUtils.hpp; vLLM csrc/custom_all_reduce.cuh"},
	{regexp.MustCompile(`^(?:aten::(?:_?scaled_dot_product\w*|_flash_attention\w*|_efficient_attention\w*|` +
		`_cudnn_attention\w*)|_vllm_fa\d_C::|(?:vllm|sglang)::unified_\w*attention|_C_cache_ops::|flash_attn::)`),
		kernel.PhaseAttention, false, "torch native_functions.yaml, vLLM"},
	{regexp.MustCompile(`^aten::(?:mm|addmm|bmm|baddbmm|_scaled_mm|linear|matmul)$`), kernel.PhaseOther, true,
		"torch native_functions.yaml: dense GEMMs of anything"},
	{regexp.MustCompile(`^(?:vllm|sglang|trtllm|flashinfer)::\w*(?:moe_forward|fused_experts|fused_moe)`),
		kernel.PhaseExperts,
		true, "vLLM fused_moe/layer.py, flashinfer: all of a MoE layer"},
}

// OperatorOf is the number of the rule for an operator plus 1, 0 for none. Ranges of
// torch.autograd.profiler.emit_nvtx carry the operator with an id behind.
func OperatorOf(name string) int8 {
	name, _, _ = strings.Cut(name, ", ")
	if !strings.Contains(name, "::") && !strings.HasPrefix(name, "nccl:") && name != "record_param_comms" {
		return 0
	}
	for i := range operatorRules {
		if operatorRules[i].re.MatchString(name) {
			return int8(i + 1)
		}
	}
	return 0
}

// PhaseBy is the phase of a kernel by the strongest evidence there is: the label of a
// range, the operator that launched it, and what its own name says.
func PhaseBy(l Location, operator int8, own kernel.Phase) (kernel.Phase, Evidence) {
	named := own != kernel.PhaseUnknown
	switch {
	case l.Phase != "" && !l.Module:
		return l.Phase, l.Evidence
	case operator > 0 && !operatorRules[operator-1].wide:
		return operatorRules[operator-1].phase, ByOperator
	case named && (own != kernel.PhaseOther || l.Phase == "" && operator == 0):
		return own, ByName
	case l.Phase != "":
		return l.Phase, l.Evidence
	case operator > 0:
		return operatorRules[operator-1].phase, ByOperator
	}
	return kernel.PhaseUnknown, ByNothing
}

// Batch is what the range of a step says it runs. A step that holds any prompt is
// prefill, whatever else it holds.
type Batch struct {
	Named, Prefill bool
	Tokens         int    // 0 where the range does not say
	Requests       int    // likewise; of ranges that name no tokens
	Arm            string // of the hook's switch; empty where the range names none, or one that lapsed
}

// inner stands between the names of the hook's range and of the engine's.
const inner = " > "

// expired is behind the name of an arm whose order lapsed: the step ran another.
const expired = " expired"

// The ranges of engines' steps: the hook's, vLLM's worker, SGLang's model runner and ATOM's,
// TensorRT-LLM's executor. In vLLM's, sums of squares stand behind sq.
var (
	hookStep     = regexp.MustCompile(`^moebalance step=\d+ tokens=(\d+) sequence=\d+ arm=`)
	vllmStep     = regexp.MustCompile(`context_(\d+)\((?:sq)?(\d+)[^)]*\)_generation_(\d+)\((?:sq)?(\d+)`)
	sglangStep   = regexp.MustCompile(`^(?:step\[(\w+) |(prefill|decode)\[)bs=(\d+)(.*)\]$`)
	sglangTokens = regexp.MustCompile(` (?:toks?|[cg]_sq|ext|dec)=(\d+)`)
	tensorrtStep = regexp.MustCompile(
		`^\[Executor\] _forward_step ?\d*: (\d+) ctx reqs, (?:\d+ ctx tokens, )?(\d+) gen reqs`)
)

// BatchOf reads the name of the range of a step.
func BatchOf(name string) Batch {
	if m := hookStep.FindStringSubmatch(name); m != nil {
		arm, own, _ := strings.Cut(name[len(m[0]):], inner)
		b := BatchOf(own)
		if b.Tokens == 0 {
			b.Tokens, _ = strconv.Atoi(m[1])
		}
		if !strings.HasSuffix(arm, expired) {
			b.Arm = arm
		}
		return b
	}
	number := func(text string) int { n, _ := strconv.Atoi(text); return n }
	if m := vllmStep.FindStringSubmatch(name); m != nil {
		return Batch{Named: true, Prefill: number(m[1]) > 0, Tokens: number(m[2]) + number(m[4])}
	}
	if m := sglangStep.FindStringSubmatch(name); m != nil {
		tokens := 0
		for _, n := range sglangTokens.FindAllStringSubmatch(m[4], -1) {
			tokens += number(n[1])
		}
		switch strings.ToLower(m[1] + m[2]) {
		case "decode":
			return Batch{Named: true, Tokens: max(tokens, number(m[3]))}
		case "extend", "mixed", "prefill":
			return Batch{Named: true, Prefill: true, Tokens: tokens}
		}
	}
	if m := tensorrtStep.FindStringSubmatch(name); m != nil {
		return Batch{Named: true, Prefill: number(m[1]) > 0, Requests: number(m[1]) + number(m[2])}
	}
	return Batch{}
}

// String is what the batch is, empty where the range does not say.
func (b Batch) String() string {
	switch {
	case !b.Named:
		return ""
	case b.Prefill:
		return "prefill"
	}
	return "decode"
}

// BatchesName is what batches of one kind have in common, with their tokens where all say
// them: prefill, 7217 to 8192 tokens.
func BatchesName(list []Batch) string {
	low, high := list[0].Tokens, list[0].Tokens
	for _, b := range list {
		low, high = min(low, b.Tokens), max(high, b.Tokens)
	}
	name, tokens := list[0].String(), fmt.Sprintf("%d to %d tokens", low, high)
	switch {
	case low == 0:
		return name
	case high == 1:
		tokens = "1 token"
	case low == high:
		tokens = fmt.Sprintf("%d tokens", low)
	}
	return strings.TrimPrefix(name+", "+tokens, ", ")
}
