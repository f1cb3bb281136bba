package diff

import (
	"fmt"
	"testing"

	"github.com/moebalance/moebalance/compare/imbalance"
	of "github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// mixed is a trace of two ranks and one layer whose steps are named by ranges: kinds[i]
// is the kind of step i, and rank 1 takes times[i], rank 0 half of it.
func mixed(kernels [][]string, kinds []int, ranges []string, times []int64) *trace.Trace {
	t := &trace.Trace{Arm: "normal"}
	for i, k := range kernels {
		t.StepKinds = append(t.StepKinds, trace.StepKind{Kind: i, Kernels: k})
	}
	for s, kind := range kinds {
		t.StepKinds[kind].Steps = append(t.StepKinds[kind].Steps, s)
		t.StepTimes = append(t.StepTimes, trace.StepTime{Step: router.OptInt(s), WallNS: 1000, Range: ranges[s],
			Batch: of.BatchOf(ranges[s])})
		for rank := range 2 {
			ns := times[s] * int64(rank+1) / 2
			t.Cells = append(t.Cells, trace.Cell{Rank: rank, Step: router.OptInt(s), Layer: 0, Phase: trace.PhaseExperts,
				Kind: router.OptInt(kind),
				Sum:  imbalance.Sum{Instances: int64(kind + 1), TotalNS: ns, BusyNS: ns, GEMMs: 1, GEMMNS: ns}})
		}
	}
	return t
}

// Prefill is compared with prefill, whatever its number in either arm, and only with
// steps of as many tokens.
func TestKindsAreMatched(t *testing.T) {
	const prefill, small, decode = "execute_context_8(8187)_generation_5(5)", "execute_context_2(2048)_generation_0(0)",
		"execute_context_0(0)_generation_32(32)"
	a, b := []string{"topk", "fused_moe_kernel"}, []string{"topk", "fused_moe_kernel (CUDA graph)"}
	normal := mixed([][]string{a, b}, []int{0, 0, 1, 1}, []string{prefill, small, decode, decode},
		[]int64{400, 100, 20, 20})
	perfect := mixed([][]string{b, a}, []int{0, 1, 1}, []string{decode, prefill, prefill}, []int64{30, 360, 380})
	perfect.Arm = "perfect"
	c := Compare(normal, perfect)
	if len(c.Kinds) != 2 {
		t.Fatalf("have %+v", c.Kinds)
	}
	for i, want := range []string{
		"prefill steps of 8192 tokens [0] [2] 400 380", // not 370: the normal arm has no second one
		"decode steps of 32 tokens [3] [0] 20 30",
	} {
		k := c.Kinds[i]
		if have := fmt.Sprint(k.Steps, " ", k.NormalSteps, " ", k.PerfectSteps, " ", k.SlowestExperts.NormalNS, " ",
			k.SlowestExperts.PerfectNS); have != want {
			t.Errorf("have %s, want %s", have, want)
		}
	}
	if c.Step.NormalNS != 300 || c.Normal.Steps != 1 {
		t.Errorf("the comparison is of other steps: %+v", c.Step)
	}
}

// Kinds of one set of kernels are matched by their tokens, whichever takes most time.
func TestKindsAreMatchedByTokens(t *testing.T) {
	const large, small = "execute_context_8(8192)_generation_0(0)", "execute_context_1(1024)_generation_0(0)"
	k := [][]string{{"gemm"}, {"gemm"}}
	normal := mixed(k, []int{0, 1}, []string{large, small}, []int64{400, 60})
	perfect := mixed(k, []int{1, 0, 0, 0}, []string{large, small, small, small}, []int64{100, 50, 50, 50})
	perfect.Arm = "perfect"
	c := Compare(normal, perfect)
	if len(c.Kinds) != 2 || fmt.Sprint(c.Kinds[0].NormalSteps, c.Kinds[0].PerfectSteps, c.Kinds[1].NormalSteps,
		c.Kinds[1].PerfectSteps) != "[0] [0] [1] [3]" {
		t.Errorf("have %+v", c.Kinds)
	}
}

// Without ranges, kernels match kinds, and the names say no more than that.
func TestKindsWithoutRanges(t *testing.T) {
	a, b, other := []string{"topk", "gemm_64x16"}, []string{"topk", "gemv"}, []string{"sort"}
	normal := mixed([][]string{a, b, other}, []int{0, 1, 2}, make([]string, 3), []int64{400, 20, 30})
	perfect := mixed([][]string{b, {"topk", "gemm_128x16"}}, []int{0, 1}, make([]string, 2), []int64{30, 360})
	c := Compare(normal, perfect)
	if len(c.Kinds) != 3 || c.Kinds[0].Steps != "steps of 300 ns GPU time" ||
		fmt.Sprint(c.Kinds[0].PerfectSteps) != "[1]" || fmt.Sprint(c.Kinds[1].PerfectSteps) != "[0]" {
		t.Errorf("have %+v", c.Kinds)
	}
	if alone := c.Kinds[2]; alone.LeftOut != 1 || len(alone.NormalSteps) > 0 || alone.Step.NormalNS.Defined() {
		t.Errorf("the kind of one arm alone: %+v", alone)
	}
}

// Kinds beside the first are left out where they hold other tokens; with another first
// kind nothing is compared.
func TestKindsOfOtherTokens(t *testing.T) {
	const prefill, decode = "execute_context_8(8187)_generation_5(5)", "execute_context_0(0)_generation_32(32)"
	a, b := []string{"topk", "fused_moe_kernel"}, []string{"topk", "fused_moe_kernel (CUDA graph)"}
	arm := func(first, second string) *trace.Trace {
		return mixed([][]string{a, b}, []int{0, 1, 1}, []string{first, second, second}, []int64{400, 30, 30})
	}
	perfect := arm(prefill, "execute_context_0(0)_generation_64(64)")
	perfect.Arm = "perfect"
	perfect.Cells[0].Instances++ // no copy
	perfect.Cells[1].Instances++
	c := Compare(arm(prefill, decode), perfect)
	if !warned(c, KindsApart, "") {
		t.Errorf("decode of 32 and 64 tokens: %v", c.Warnings)
	}
	if other := c.Kinds[1]; other.Gain.Defined() || len(other.NormalSteps)+len(other.PerfectSteps) > 0 ||
		other.Step.NormalNS.Defined() || other.LeftOut != 4 {
		t.Errorf("%v, %+v", reasons(c), c.Kinds)
	}
	c = Compare(arm(prefill, decode), arm("execute_context_1(100)_generation_0(0)", decode))
	noGain(t, "100 tokens", c)
}

// Of kinds of a phase that have no gain the first is named, and of dummies and a phase with a gain none.
func TestKindsOfAPhase(t *testing.T) {
	const decode, dummy = "execute_context_0(0)_generation_32(32)", "execute_context_0(0)_generation_0(0)"
	var pairs []kindPair
	for _, name := range []string{decode, decode, dummy} {
		k := &stepKind{trace.StepKind{Steps: []int{0}}, map[int]of.Batch{0: of.BatchOf(name)}}
		pairs = append(pairs, kindPair{arms: [2]*stepKind{k, k}})
	}
	for want, whys := range [][]string{{"", "unlike", "unlike"}, {"unlike", "unlike", "unlike"}} {
		c := Comparison{}
		if c.warnOfKinds(pairs, whys); len(c.Warnings) != want {
			t.Errorf("%v: %v", whys, c.Warnings)
		}
	}
}
