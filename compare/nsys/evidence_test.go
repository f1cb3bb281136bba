package nsys

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/nsys/capture"
	"github.com/moebalance/moebalance/compare/nsys/kernel"
)

func TestOperators(t *testing.T) {
	for name, want := range map[string]Phase{
		"aten::_grouped_mm": PhaseExperts, "aten::_grouped_mm, op_id = 31": PhaseExperts,
		"_moe_C::topk_softmax": PhaseRouter, "_moe_C::moe_align_block_size": PhaseDispatch,
		"_moe_C::moe_sum": PhaseCombine, "record_param_comms": PhaseCommunication,
		"vllm::all_reduce": PhaseCommunication, "nccl:all_to_all": PhaseCommunication,
		"aten::_cudnn_attention_forward": PhaseAttention, "_vllm_fa3_C::fwd": PhaseAttention, "aten::mm": PhaseOther,
		"vllm::moe_forward_shared": PhaseExperts,
		"aten::topk":               "", "aten::mul": "", "moe_forward": "", "": "",
	} {
		have := Phase("")
		if i := operatorOf(name); i > 0 {
			have = operatorRules[i-1].phase
		}
		equal(t, name, have, want)
	}
	for _, r := range operatorRules {
		if r.source == "" {
			t.Errorf("%s has no source", r.re)
		}
	}
}

// Stronger evidence wins: a range over everything, a module's range below what an
// operator or a name knows exactly, an operator of many phases below names.
func TestOrderOfEvidence(t *testing.T) {
	narrow, wide, dense := operatorOf("_moe_C::topk_softmax"), operatorOf("vllm::moe_forward"), operatorOf("aten::mm")
	ranged, module := location{Phase: PhaseCombine, Evidence: byRange},
		location{Phase: PhaseExperts, Evidence: byFramework, module: true}
	for _, c := range []struct {
		what     string
		at       location
		operator int8
		own      Phase
		phase    Phase
		by       evidence
	}{
		{"range", ranged, narrow, PhaseDispatch, PhaseCombine, byRange},
		{"operator of one phase", location{}, narrow, PhaseOther, PhaseRouter, byOperator},
		{"operator of one phase in a module", module, narrow, PhaseUnknown, PhaseRouter, byOperator},
		{"name under an operator of many", location{}, wide, PhaseDispatch, PhaseDispatch, byName},
		{"operator of many", location{}, wide, PhaseUnknown, PhaseExperts, byOperator},
		{"dense GEMM", location{}, dense, PhaseOther, PhaseOther, byOperator},
		{"name in a module", module, 0, PhaseDispatch, PhaseDispatch, byName},
		{"module", module, 0, PhaseOther, PhaseExperts, byFramework},
		{"name", location{}, 0, PhaseOther, PhaseOther, byName},
		{"nothing", location{}, 0, PhaseUnknown, PhaseUnknown, byNothing},
	} {
		phase, by := phaseBy(c.at, c.operator, c.own)
		equal(t, c.what, phase, c.phase)
		equal(t, c.what, by.String(), c.by.String())
	}
}

// A rule of the user wins over a range, and makes GEMMs of experts.
func TestPhaseOfTheUser(t *testing.T) {
	f := newFixture()
	for p, ns := range []int64{30, 10} {
		f.work(int64(p), 1, 10, ns, "mine")
		f.work(int64(p), 2, 100, 8, "someone's own kernel")
	}
	rule, err := kernel.ParseRule("experts=^mi.e$")
	if err != nil {
		t.Fatal(err)
	}
	trace := mustRead(t, Options{Threshold: 0.1, Phases: []kernel.Rule{rule}}, f.write(t, "mine.sqlite"))
	near(t, "max/mean", trace.Imbalance[0].MaxOverMean, 1.5)
	equal(t, "evidence", trace.Kernels[0].Evidence, "--phase")
	for _, text := range []string{"experts", "nothing=x", "experts=(", "experts=", ""} {
		if _, err := kernel.ParseRule(text); err == nil {
			t.Errorf("%q: want an error", text)
		}
	}
}

// Sampling takes the largest of the vocabulary with the same kernel as a gate.
func TestTopKOfSamplingIsNoRouter(t *testing.T) {
	trace := changed(t, inTestdata(t, "hf-qwen3-serving/rank0.json.gz"), func(int, *capture.Recording) {})
	for _, k := range trace.Kernels {
		if strings.Contains(k.Name, "gatherTopK") && k.Evidence != "position" {
			t.Errorf("%s is placed by %s", k.Name, k.Evidence)
		}
	}
	if c := kernel.Classify(
		"void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(int)"); c.Phase != PhaseUnknown || !c.TopK {
		t.Errorf("have %+v", c)
	}
}

// The captures' kernels that no rule knows are PyTorch's general ones only: all
// grouped GEMMs, GEMMs, collectives and top-k are named.
func TestKernelsOfTheCaptures(t *testing.T) {
	for _, name := range []string{"gptoss-ep4-loop/normal.sqlite", "deepseek-ep4-ranks/normal.rank0.sqlite",
		"gptoss-graph/node-normal.sqlite"} {
		trace := mustRead(t, Options{}, filepath.Join(testdata, name))
		for _, k := range trace.Kernels {
			general := strings.Contains(k.Name, "at::native::") || strings.Contains(k.Name, "at_cuda_detail::cub") ||
				strings.Contains(k.Name, "<unnamed>::") ||
				strings.Contains(k.Name, "kernelHistogram1D") || strings.Contains(k.Name, "compute_cuda_kernel")
			if (k.Phase == PhaseUnknown) != general {
				t.Errorf("%s: %s is %q", name, k.Name, k.Phase)
			}
		}
	}
}
