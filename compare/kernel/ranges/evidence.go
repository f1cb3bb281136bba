// Package ranges reads what the ranges and operators around a launch say of it: the step, the
// layer, the expert and the phase, and of a step the arm and the batch. What kernels' own
// names say is package kernel's business, and what their order says package steps'.
package ranges

import (
	"regexp"
	"strings"

	"github.com/moebalance/moebalance/compare/kernel"
)

// operatorRule is what an operator's name says of the kernels it launches.
type operatorRule struct {
	re    *regexp.Regexp
	phase kernel.Phase
	wide  bool // it launches kernels of several phases, whose names are better evidence
}

// operatorRules are tried in order. What none of them matches says nothing.
var operatorRules = []operatorRule{
	// torch native_functions.yaml
	{regexp.MustCompile(`^aten::_(?:scaled_)?grouped_mm`), kernel.PhaseExperts, false},
	// vLLM csrc/moe/torch_bindings.cpp, sgl-kernel
	{regexp.MustCompile(`^(?:_moe_C|sgl_kernel|vllm)::(?:topk_(?:softmax|sigmoid)|grouped_topk|moe_fused_gate|` +
		`biased_grouped_topk)`), kernel.PhaseRouter, false},
	// vLLM csrc/moe/torch_bindings.cpp, sgl-kernel
	{regexp.MustCompile(`^(?:_moe_C|sgl_kernel)::(?:batched_)?(?:moe_align_block_size|moe_permute|shuffle_rows|` +
		`get_moe_prepare_input|prepare_moe_input)`), kernel.PhaseDispatch, false},
	// vLLM csrc/moe/torch_bindings.cpp, sgl-kernel
	{regexp.MustCompile(`^(?:_moe_C|sgl_kernel)::(?:moe_sum|moe_unpermute|moe_sum_reduce|apply_shuffle_mul_sum)`),
		kernel.PhaseCombine, false},
	// vLLM csrc/moe, csrc/quantization
	{regexp.MustCompile(`^(?:_moe_C|sgl_kernel|_C)::(?:\w*moe\w*gemm|cutlass_\w*moe_mm|\w*group(?:ed)?_mm)`),
		kernel.PhaseExperts, false},
	// torch c10d ParamCommsUtils.hpp; vLLM csrc/custom_all_reduce.cuh
	{regexp.MustCompile(`^(?:record_param_comms$|nccl:|c10d::|_c10d_functional::|_C_custom_ar::|(?:vllm|sglang|` +
		`sgl_kernel)::(?:\w*all_?reduce|all_gather|reduce_scatter|all_to_all))`), kernel.PhaseCommunication, false},
	// torch native_functions.yaml, vLLM
	{regexp.MustCompile(`^(?:aten::(?:_?scaled_dot_product\w*|_flash_attention\w*|_efficient_attention\w*|` +
		`_cudnn_attention\w*)|_vllm_fa\d_C::|(?:vllm|sglang)::unified_\w*attention|_C_cache_ops::|flash_attn::)`),
		kernel.PhaseAttention, false},
	// torch native_functions.yaml, vLLM csrc/quantization, sgl-kernel: dense GEMMs of anything, as of shared experts
	{regexp.MustCompile(`^(?:aten::(?:mm|addmm|bmm|baddbmm|_scaled_mm|linear|matmul)|_C::cutlass_\w+_mm|` +
		`sgl_kernel::\w+_scaled_mm)$`), kernel.PhaseOther, true},
	// vLLM fused_moe/layer.py, flashinfer: all of a MoE layer
	{regexp.MustCompile(`^(?:vllm|sglang|trtllm|flashinfer)::\w*(?:moe_forward|fused_experts|fused_moe)`),
		kernel.PhaseExperts, true},
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

// PhaseBy is the phase of a kernel by the strongest evidence there is. Ranges of the user and of the captures in
// testdata name phases on purpose; ranges of engines and frameworks name modules. The operator of the framework that
// launched a kernel is asked before the kernel's name where it does one thing only, and after it where it does several.
func PhaseBy(l Location, operator int8, own kernel.Phase) kernel.Phase {
	switch {
	case l.Phase != "" && !l.Module:
		return l.Phase
	case operator > 0 && !operatorRules[operator-1].wide:
		return operatorRules[operator-1].phase
	case own != kernel.PhaseUnknown && own != kernel.PhaseOther:
		return own
	case l.Phase != "":
		return l.Phase
	case operator > 0:
		return operatorRules[operator-1].phase
	}
	return own
}
