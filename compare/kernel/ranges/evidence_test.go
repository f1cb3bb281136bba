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
		"aten::mm":                 kernel.PhaseOther,
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
	ranged, module := Location{Phase: kernel.PhaseCombine, Evidence: ByRange},
		Location{Phase: kernel.PhaseExperts, Evidence: ByFramework, Module: true}
	for _, c := range []struct {
		what     string
		at       Location
		operator int8
		own      kernel.Phase
		phase    kernel.Phase
		by       Evidence
	}{
		{"range", ranged, narrow, kernel.PhaseDispatch, kernel.PhaseCombine, ByRange},
		{"operator of one phase", Location{}, narrow, kernel.PhaseOther, kernel.PhaseRouter, ByOperator},
		{"operator of one phase in a module", module, narrow, kernel.PhaseUnknown, kernel.PhaseRouter, ByOperator},
		{"name under an operator of many", Location{}, wide, kernel.PhaseDispatch, kernel.PhaseDispatch, ByName},
		{"operator of many", Location{}, wide, kernel.PhaseUnknown, kernel.PhaseExperts, ByOperator},
		{"dense GEMM", Location{}, dense, kernel.PhaseOther, kernel.PhaseOther, ByOperator},
		{"name in a module", module, 0, kernel.PhaseDispatch, kernel.PhaseDispatch, ByName},
		{"module", module, 0, kernel.PhaseOther, kernel.PhaseExperts, ByFramework},
		{"name", Location{}, 0, kernel.PhaseOther, kernel.PhaseOther, ByName},
		{"nothing", Location{}, 0, kernel.PhaseUnknown, kernel.PhaseUnknown, ByNothing},
	} {
		phase, by := PhaseBy(c.at, c.operator, c.own)
		if phase != c.phase || by != c.by {
			t.Errorf("%s: have %s by %d, want %s by %d", c.what, phase, by, c.phase, c.by)
		}
	}
}
