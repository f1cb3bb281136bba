package ranges

import (
	"testing"

	"github.com/moebalance/moebalance/compare/kernel"
)

func TestOperators(t *testing.T) {
	for name, want := range map[string]kernel.Phase{
		"aten::_grouped_mm": kernel.PhaseExperts, "aten::_grouped_mm, op_id = 31": kernel.PhaseExperts,
		"_moe_C::topk_softmax": kernel.PhaseRouter, "_moe_C::moe_align_block_size": kernel.PhaseDispatch,
		"_moe_C::moe_sum": kernel.PhaseCombine, "record_param_comms": kernel.PhaseCommunication,
		"vllm::all_reduce": kernel.PhaseCommunication, "nccl:all_to_all": kernel.PhaseCommunication,
		"aten::_cudnn_attention_forward": kernel.PhaseAttention, "_vllm_fa3_C::fwd": kernel.PhaseAttention,
		"aten::mm": kernel.PhaseOther, "_C::cutlass_scaled_mm": kernel.PhaseOther, "_C::cutlass_moe_mm": kernel.PhaseExperts,
		"vllm::moe_forward_shared": kernel.PhaseExperts,
		"aten::topk":               "", "aten::mul": "", "moe_forward": "", "": "",
	} {
		have := kernel.Phase("")
		if i := OperatorOf(name); i > 0 {
			have = operatorRules[i-1].phase
		}
		if have != want {
			t.Errorf("%s: have %q, want %q", name, have, want)
		}
	}
}

// Stronger evidence wins: a range over everything, a module's range below what an
// operator or a name knows exactly, an operator of many phases below names.
func TestOrderOfEvidence(t *testing.T) {
	narrow, wide, dense := OperatorOf("_moe_C::topk_softmax"), OperatorOf("vllm::moe_forward"), OperatorOf("aten::mm")
	ranged, module := Location{Phase: kernel.PhaseCombine}, Location{Phase: kernel.PhaseExperts, Module: true}
	for _, c := range []struct {
		what     string
		at       Location
		operator int8
		own      kernel.Phase
		phase    kernel.Phase
	}{
		{"range", ranged, narrow, kernel.PhaseDispatch, kernel.PhaseCombine},
		{"operator of one phase", Location{}, narrow, kernel.PhaseOther, kernel.PhaseRouter},
		{"operator of one phase in a module", module, narrow, kernel.PhaseUnknown, kernel.PhaseRouter},
		{"name under an operator of many", Location{}, wide, kernel.PhaseDispatch, kernel.PhaseDispatch},
		{"operator of many", Location{}, wide, kernel.PhaseUnknown, kernel.PhaseExperts},
		{"dense GEMM", Location{}, dense, kernel.PhaseOther, kernel.PhaseOther},
		{"name in a module", module, 0, kernel.PhaseDispatch, kernel.PhaseDispatch},
		{"module", module, 0, kernel.PhaseOther, kernel.PhaseExperts},
		{"name", Location{}, 0, kernel.PhaseOther, kernel.PhaseOther},
		{"nothing", Location{}, 0, kernel.PhaseUnknown, kernel.PhaseUnknown},
	} {
		if phase := PhaseBy(c.at, c.operator, c.own); phase != c.phase {
			t.Errorf("%s: have %s, want %s", c.what, phase, c.phase)
		}
	}
}
