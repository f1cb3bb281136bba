package diff

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

func (c Comparison) work(quantity string) (w Work, ok bool) {
	i := slices.IndexFunc(c.Work, func(w Work) bool { return w.Quantity == quantity })
	if i < 0 {
		return Work{}, false
	}
	return c.Work[i], true
}

// Every recorded pair did the same work. What they differ in was summed from the phase
// tables: attention and other compute, over tokens where ranges name them.
func TestGenuinePairsDidTheSameWork(t *testing.T) {
	for _, pair := range []struct {
		normal, perfect string
		apart           float64 // −1: bare layers, nothing outside
		unit            string
	}{
		{"gptoss-ep4-loop/normal.*", "gptoss-ep4-loop/perfect.*", -1, ""},
		{"gptoss-ep4-ranks/normal.*", "gptoss-ep4-ranks/perfect.*", -1, ""},
		{"deepseek-ep4-ranks/normal.*", "deepseek-ep4-ranks/perfect.*", -1, ""},
		{"torch/grouped-normal.*", "torch/grouped-perfect.*", -1, ""},
		{"hf-qwen3-ep4/normal.*", "hf-qwen3-ep4/perfect.*", 0.0038, "ms/step"},
		{"hf-qwen3-ep4-nsys/normal.*", "hf-qwen3-ep4-nsys/perfect.*", 0.0031, "ms/step"},
		{"field/results/vllm-qwen3-normal.rank*", "field/results/vllm-qwen3-perfect.rank*", 0.0034, "µs/token"},
		{"field/results/vllm-qwen3-normal.nsys.*", "field/results/vllm-qwen3-perfect.nsys.*", 0.0198, "ms/step"},
		{"field/results/vllm-qwen3-contiguous.rank*", "field/results/vllm-qwen3-balanced.rank*", 0.0097, "µs/token"},
	} {
		c := Compare(matched(t, pair.normal), matched(t, pair.perfect))
		w, known := c.work("compute outside MoE")
		if !c.Comparable || c.Verdict != gain.NoVerdict || known != (pair.apart >= 0) ||
			known == warned(c, "equal_work_unknown", "") || !c.Prediction.Gain.Defined() {
			t.Errorf("%s: %v, %+v", pair.perfect, reasons(c), c.Work)
		}
		if known && (w.Unit != pair.unit || !w.Equal) {
			t.Errorf("%s: %+v", pair.perfect, w)
		}
		if known {
			checkNear(t, pair.perfect, w.Differs.Float64(), pair.apart, 1e-4)
		}
		for _, w := range c.Work {
			if !w.Equal {
				t.Errorf("%s: %+v", pair.perfect, w)
			}
		}
	}
}

// noGain wants nothing in a comparison that could be read as a gain.
func noGain(t *testing.T, what string, c Comparison) {
	t.Helper()
	numbers := []router.Number{c.Prediction.Gain, c.Prediction.Low, c.Ceiling.StepGain, c.Ceiling.GainBound,
		c.Step.Ratio, c.Split.Gain, c.Split.Placement.GainBound}
	for _, k := range c.Kinds {
		numbers = append(numbers, k.Gain, k.Step.Ratio)
	}
	if slices.ContainsFunc(numbers, router.Number.Defined) || c.Comparable || c.Verdict != gain.NotComparable ||
		c.Prediction.Measured != nil {
		t.Errorf("%s: %v, %q, gains %v", what, c.Comparable, c.Verdict, numbers)
	}
}

// scaled is a trace whose kernels take so much longer, or those of some phases alone.
func scaled(t *nsys.Trace, by float64, phases ...nsys.Phase) *nsys.Trace {
	part := *t
	part.Cells = slices.Clone(t.Cells)
	for i := range part.Cells {
		if c := &part.Cells[i]; len(phases) == 0 || slices.Contains(phases, c.Phase) {
			for _, ns := range []*int64{&c.TotalNS, &c.CollectiveNS, &c.BusyNS, &c.GEMMNS} {
				*ns = int64(by * float64(*ns))
			}
		}
	}
	return &part
}

var stepTokens = regexp.MustCompile(`\((\d+)\)`)

// halved is a trace whose ranges name half as many tokens for each step.
func halved(t *nsys.Trace) *nsys.Trace {
	half := *t
	half.StepTimes = slices.Clone(t.StepTimes)
	for i := range half.StepTimes {
		half.StepTimes[i].Range = stepTokens.ReplaceAllStringFunc(half.StepTimes[i].Range, func(s string) string {
			n, _ := strconv.Atoi(strings.Trim(s, "()"))
			return fmt.Sprintf("(%d)", n/2)
		})
	}
	return &half
}

// A side that did other work is refused, with the two numbers, and wins nothing.
func TestOtherWork(t *testing.T) {
	hf, vllm := "hf-qwen3-ep4-nsys/", "field/results/vllm-qwen3-"
	normal, perfect := matched(t, hf+"normal.*"), matched(t, hf+"perfect.*")
	vllmNormal, vllmPerfect := matched(t, vllm+"normal.rank*"), matched(t, vllm+"perfect.rank*")
	small := *perfect
	small.Kernels = append(slices.Clone(perfect.Kernels),
		nsys.KernelStat{Name: "void topkGatingSoftmax<float, (int)8, (int)64, (int)4, (int)16>(float *)"})
	large := *normal
	large.Kernels = append(slices.Clone(normal.Kernels),
		nsys.KernelStat{Name: "void topkGatingSoftmax<float, (int)8, (int)128, (int)4, (int)16>(float *)"})
	cut := *perfect
	cut.Cells = slices.DeleteFunc(slices.Clone(perfect.Cells), func(c nsys.Cell) bool { return c.Layer == 2 })
	triton := *perfect
	triton.Kernels, triton.StepKinds = slices.Clone(perfect.Kernels), nil
	for i := range triton.Kernels {
		if k := &triton.Kernels[i]; strings.Contains(k.Name, "GroupProblemShape") {
			k.Name = "fused_moe_kernel"
		}
	}
	for _, k := range []struct {
		what            string
		normal, perfect *nsys.Trace
		reason          string
	}{
		{"half the batch", normal, scaled(perfect, 0.5), "takes 5.78 ms and 2.88 ms per step"},
		{"faster outside", normal, scaled(perfect, 0.9, nsys.PhaseAttention, nsys.PhaseOther),
			"takes 5.78 ms and 5.19 ms per step"},
		{"all faster", normal, scaled(perfect, 0.9), "takes 5.78 ms and 5.19 ms per step"},
		{"half the tokens", vllmNormal, scaled(halved(vllmPerfect), 0.5), "tokens per step"},
		{"other passes of the same engine", vllmNormal, matched(t, vllm+"balanced.rank*"),
			"8192 and 15872 tokens per step"},
		{"faster per token", vllmNormal, scaled(vllmPerfect, 0.9), "takes 2.54 µs and 2.30 µs per token"},
		{"fewer layers", normal, &cut, "different layers: normal has 0 to 2; perfect has 0, 1"},
		{"other gate", &large, &small, "gates of 128 and 64 experts"},
		{"other model", matched(t, "gptoss-ep4-ranks/normal.*"), perfect, "compute outside the MoE blocks"},
		{"another library", normal, &triton,
			"cutlass::device_kernel (CUTLASS) in the normal arm and fused_moe_kernel (Triton: vLLM, SGLang)"},
		{"a loop and a grouped kernel", matched(t, "torch/loop-normal.*"), matched(t, "torch/grouped-perfect.*"),
			"dense GEMMs (cuBLAS) in the normal arm"},
	} {
		c := Compare(AssumeArm(k.normal, gain.Normal), AssumeArm(k.perfect, gain.Perfect))
		if !strings.Contains(strings.Join(reasons(c), "; "), k.reason) {
			t.Errorf("%s: %v, want %q", k.what, reasons(c), k.reason)
		}
		noGain(t, k.what, c)
	}
}

// Counts say how many tokens a step holds where ranges do not, if they count single steps.
func TestWorkByCounts(t *testing.T) {
	counted := func(arm string, slots int64, steps int) *nsys.Trace {
		part := *captured(t, "deepseek-ep4-ranks", arm)
		part.Imbalance = append(slices.Clone(part.Imbalance), imbalance.Row{Layer: 0, Level: router.LevelExpert,
			Quantity: imbalance.Load, Steps: steps, Parts: 256})
		part.Experts = nil
		for e := range 256 {
			part.Experts = append(part.Experts, nsys.ExpertStat{Layer: 0, Expert: e, Rank: e / 64, Slots: router.OptInt(slots),
				Known: true})
		}
		return &part
	}
	half := Compare(counted("normal", 128, 1), counted("perfect", 64, 1))
	if !strings.Contains(strings.Join(reasons(half), "; "), "32768 and 16384 slots per step and layer") {
		t.Errorf("half the tokens: %v", reasons(half))
	}
	noGain(t, "half the tokens", half)
	summed := counted("perfect", 64, 1)
	summed.Warnings = append(slices.Clone(summed.Warnings), router.Warning{Code: "counts_window"})
	for what, c := range map[string]Comparison{
		"other numbers of steps": Compare(counted("normal", 128, 1), counted("perfect", 256, 2)),
		"sums of many passes":    Compare(counted("normal", 128, 1), summed),
	} {
		if !c.Comparable {
			t.Errorf("%s: %v", what, reasons(c))
		}
	}
}

// TensorRT-LLM's ranges name requests, not tokens: half of them are half of the work.
func TestWorkByRequests(t *testing.T) {
	normal, perfect := *captured(t, "deepseek-ep4-ranks", "normal"), *captured(t, "deepseek-ep4-ranks", "perfect")
	if w, ok := Compare(&normal, &perfect).work("requests per step"); !ok || !w.Equal || w.Normal != 1024 {
		t.Errorf("as recorded: %+v", w)
	}
	perfect.StepTimes = slices.Clone(perfect.StepTimes)
	for i := range perfect.StepTimes {
		perfect.StepTimes[i].Range = strings.Replace(perfect.StepTimes[i].Range, "1024 ctx", "512 ctx", 1)
	}
	c := Compare(&normal, &perfect)
	if !strings.Contains(strings.Join(reasons(c), "; "), "the sides hold 1024 and 512 requests per step") {
		t.Errorf("half the requests: %v", reasons(c))
	}
	noGain(t, "half the requests", c)
}

// The rank that is missing may be the busiest: rank 2 is, of the four.
func TestFewRanks(t *testing.T) {
	normal, perfect := *captured(t, "deepseek-ep4-ranks", "normal"), captured(t, "deepseek-ep4-ranks", "perfect")
	normal.Cells = slices.DeleteFunc(slices.Clone(normal.Cells), func(c nsys.Cell) bool { return c.Rank == 2 })
	c := Compare(&normal, perfect)
	if !c.Comparable || !warned(c, FewRanks, "") || c.Prediction.Gain.Defined() || c.Split.Known() {
		t.Errorf("three of four ranks: %v, %+v", reasons(c), c.Prediction)
	}
}

// Two builds may compute otherwise, but not hold other tokens.
func TestWorkOfBuilds(t *testing.T) {
	names := gain.Builds{"a", "b"}
	normal, perfect := matched(t, "field/results/vllm-qwen3-normal.rank*"),
		matched(t, "field/results/vllm-qwen3-perfect.rank*")
	if c := CompareBuilds(normal, scaled(perfect, 0.5), names); !c.Comparable {
		t.Errorf("a faster build: %v", reasons(c))
	}
	c := CompareBuilds(normal, matched(t, "field/results/vllm-qwen3-balanced.rank*"), names)
	if w, _ := c.work("tokens per step"); c.Comparable || w.Equal {
		t.Errorf("other tokens: %+v", c.Work)
	}
}

// Bare layers show no compute outside the blocks: equal work is unknown, and said to be.
// Where nothing names the experts, a loop over them cannot be told from projections.
func TestUnknownWork(t *testing.T) {
	normal, perfect := matched(t, "hf-qwen3-ep4-nsys/normal.*"), matched(t, "hf-qwen3-ep4-nsys/perfect.*")
	bare := func(t *nsys.Trace) *nsys.Trace { return scaled(t, 0.01, nsys.PhaseAttention, nsys.PhaseOther) }
	unnamed := func(t *nsys.Trace) *nsys.Trace {
		loop := *t
		loop.Kernels, loop.Cells = nil, slices.Clone(t.Cells)
		for i := range loop.Cells {
			if loop.Cells[i].Phase == nsys.PhaseExperts {
				loop.Cells[i].Phase = nsys.PhaseOther
			}
		}
		return &loop
	}
	for what, c := range map[string]Comparison{
		"bare layers":     Compare(bare(normal), bare(perfect)),
		"unnamed experts": Compare(unnamed(normal), unnamed(AssumeArm(perfect, gain.Perfect))),
	} {
		if !c.Comparable || !warned(c, "equal_work_unknown", "") {
			t.Errorf("%s: %v", what, reasons(c))
		}
	}
	// One side alone without compute outside did not do the same.
	noGain(t, "bare layers against a model", Compare(normal, bare(perfect)))
}

// What runs beside the expert GEMMs, such as their activation, is no backend of experts; a
// fused kernel of all of the block is.
func TestExpertKernelsAreGEMMs(t *testing.T) {
	trace := &nsys.Trace{}
	for name, phase := range map[string]nsys.Phase{
		"void moe::dev::activation::activationKernel<x>":                nsys.PhaseExperts,
		"void deep_gemm::sm90_fp8_gemm_1d2d_impl<m_grouped_contiguous>": nsys.PhaseExperts,
	} {
		k := nsys.KernelStat{}
		k.Name, k.Phase, k.TotalNS = name, phase, 10
		trace.Kernels = append(trace.Kernels, k)
	}
	if got := expertKernels(trace); len(got) != 1 {
		t.Errorf("%v", got)
	}
}
