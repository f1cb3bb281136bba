package diff

import (
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

func (c Comparison) work(quantity string) (w Work, ok bool) {
	i := slices.IndexFunc(c.Work, func(w Work) bool { return w.Quantity == quantity })
	if i < 0 {
		return Work{}, false
	}
	return c.Work[i], true
}

// noGain wants nothing in a comparison that could be read as a gain.
func noGain(t *testing.T, what string, c Comparison) {
	t.Helper()
	numbers := []router.Number{c.Step.Ratio, c.Split.Gain, c.Split.Low}
	for _, k := range c.Kinds {
		numbers = append(numbers, k.Gain, k.Step.Ratio)
	}
	if slices.ContainsFunc(numbers, router.Number.Defined) || c.Comparable || c.Verdict != gain.NotComparable ||
		c.Split.Measured != nil {
		t.Errorf("%s: %v, %q, gains %v", what, c.Comparable, c.Verdict, numbers)
	}
}

// scaled is a trace whose kernels take so much longer, or the kernels of some phases alone.
func scaled(t *trace.Trace, by float64, phases ...trace.Phase) *trace.Trace {
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

// halved is a trace whose ranges name half as many tokens for each step.
func halved(t *trace.Trace) *trace.Trace {
	half := *t
	half.StepTimes = slices.Clone(t.StepTimes)
	for i := range half.StepTimes {
		half.StepTimes[i].Batch.Tokens /= 2
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
		trace.KernelStat{Name: "void topkGatingSoftmax<float, (int)8, (int)64, (int)4, (int)16>(float *)"})
	large := *normal
	large.Kernels = append(slices.Clone(normal.Kernels),
		trace.KernelStat{Name: "void topkGatingSoftmax<float, (int)8, (int)128, (int)4, (int)16>(float *)"})
	cut := perfect.WithCells(slices.DeleteFunc(slices.Clone(perfect.Cells),
		func(c trace.Cell) bool { return c.Layer == 2 }))
	triton := *perfect
	triton.Kernels, triton.StepKinds = slices.Clone(perfect.Kernels), nil
	for i := range triton.Kernels {
		if k := &triton.Kernels[i]; strings.Contains(k.Name, "GroupProblemShape") {
			k.Name = "fused_moe_kernel"
		}
	}
	for _, k := range []struct {
		what            string
		normal, perfect *trace.Trace
		reason          string
	}{
		{"half the batch", normal, scaled(perfect, 0.5), "takes 17.7 ms and 8.84 ms per step"},
		{"faster outside", normal, scaled(perfect, 0.9, trace.PhaseAttention, trace.PhaseOther),
			"takes 17.7 ms and 15.9 ms per step"},
		{"all faster", normal, scaled(perfect, 0.9), "takes 17.7 ms and 15.9 ms per step"},
		{"half the tokens", vllmNormal, scaled(halved(vllmPerfect), 0.5), "tokens per step"},
		{"other passes of the same engine", vllmNormal, matched(t, vllm+"balanced.rank*"),
			"8192 and 15872 tokens per step"},
		{"faster per token", vllmNormal, scaled(vllmPerfect, 0.9), "takes 2.54 µs and 2.30 µs per token"},
		{"fewer layers", normal, cut, "different layers: normal has 0 to 2; perfect has 0, 1"},
		{"other gate", &large, &small, "gates of 128 and 64 experts"},
		{"other model", matched(t, "gptoss-ep4-ranks/normal.*"), perfect, "compute outside MoE blocks"},
		{"another library", normal, &triton,
			"cutlass::gemm::kernel::GemmUniversal (CUTLASS) in the normal arm and fused_moe_kernel (Triton: vLLM, SGLang)"},
		{"attention of another library", normal, renamed(perfect, trace.PhaseAttention, "flashinfer::BatchPrefill"),
			"attention runs in other kernels"},
		{"graphs in one arm", normal, replayed(perfect), "(CUTLASS) (CUDA graph) in the perfect arm"},
		{"another profiler", normal, matched(t, "hf-qwen3-ep4/perfect.*"), "record both alike"},
		{"more ranks", ofWorld(normal, 4), ofWorld(perfect, 8), "of 4 ranks, the perfect side of 8"},
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

// renamed is a trace whose kernels of a phase have another name.
func renamed(t *trace.Trace, phase trace.Phase, name string) *trace.Trace {
	other := *t
	other.Kernels = slices.Clone(t.Kernels)
	for i := range other.Kernels {
		if k := &other.Kernels[i]; k.Placed == phase {
			k.Name = name
		}
	}
	return &other
}

// replayed is a trace whose expert kernels a CUDA graph replays.
func replayed(t *trace.Trace) *trace.Trace {
	other := *t
	other.StepKinds = slices.Clone(t.StepKinds)
	for i := range other.StepKinds {
		k := &other.StepKinds[i]
		k.Kernels = slices.Clone(k.Kernels)
		for n := range k.Kernels {
			k.Kernels[n] += trace.InGraph
		}
	}
	return &other
}

func ofWorld(t *trace.Trace, ranks int) *trace.Trace {
	other := *t
	other.World = router.OptInt(ranks)
	return &other
}

// Compute outside the experts that differs by 2 % is not refused for the noise of its steps; by 3 % it is,
// and so is 2 % where steps differ by more than noise.
func TestOutsideMarginAndNoise(t *testing.T) {
	steps := func(ns ...int64) *trace.Trace {
		of := &trace.Trace{}
		for step, outside := range ns {
			for rank := range 2 {
				of.Cells = append(of.Cells, cell(rank, router.OptInt(step), 0, trace.PhaseExperts, 1000, 0),
					cell(rank, router.OptInt(step), 0, trace.PhaseOther, outside, 0))
			}
		}
		return of
	}
	for _, k := range []struct {
		normal, perfect *trace.Trace
		equal           bool
	}{
		{steps(100000, 100100, 99900), steps(102010, 102110, 101910), true},
		{steps(102010, 102110, 101910), steps(100000, 100100, 99900), true},
		{steps(100000, 100100, 99900), steps(103000, 103100, 102900), false},
		{steps(100000, 110000, 90000), steps(102010, 112010, 92010), false},
		{steps(100000, 100240, 99760), steps(102300, 102545, 102055), true}, // noise of 0.00196
		{steps(100000, 100250, 99750), steps(102300, 102556, 102044), false},
	} {
		if w, _ := Compare(k.normal, k.perfect).work("compute outside MoE"); w.Equal != k.equal {
			t.Errorf("%+v", w)
		}
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
