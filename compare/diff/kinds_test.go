package diff

import (
	"fmt"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
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
	for _, c := range slices.Clone(normal.Cells) { // decode's longest is none of the experts
		if c.Phase, c.Sum = trace.PhaseAttention, (imbalance.Sum{TotalNS: 5000, BusyNS: 5000}); c.Kind == 1 {
			normal.Cells = append(normal.Cells, c)
		}
	}
	c := Compare(normal, perfect, gain.Builds{})
	if len(c.Kinds) != 2 {
		t.Fatalf("have %+v", c.Kinds)
	}
	for i, want := range []string{
		"prefill steps of 8192 tokens [0] [2] 400 380 8192 2", // not 370: the normal arm has no second one
		"decode steps of 32 tokens [3] [0] 20 30 32 1",
	} {
		k := c.Kinds[i]
		if have := fmt.Sprint(k.Steps, " ", k.NormalSteps, " ", k.PerfectSteps, " ", k.SlowestExperts.NormalNS, " ",
			k.SlowestExperts.PerfectNS, k.Tokens, k.LeftOut); have != want {
			t.Errorf("have %s, want %s", have, want)
		}
	}
	if c.Step.NormalNS != 300 || c.Normal.Steps != 1 {
		t.Errorf("the comparison is of other steps: %+v", c.Step)
	}
}

// Without ranges, kernels match kinds, of equal ones their time and not how many they are, and the names say no more.
func TestKindsWithoutRanges(t *testing.T) {
	a, b, wide := []string{"topk", "gemm_64x16"}, []string{"topk", "gemv"}, []string{"topk", "gemm_128x16"}
	normal := mixed([][]string{a, b, {"sort"}, a}, []int{0, 1, 2, 3}, make([]string, 4), []int64{400, 20, 30, 100})
	perfect := mixed([][]string{b, wide, wide}, []int{0, 1, 2, 2, 2, 2, 2}, make([]string, 7),
		[]int64{30, 360, 90, 90, 90, 90, 90})
	c := Compare(normal, perfect, gain.Builds{})
	if len(c.Kinds) != 4 || c.Kinds[0].Steps != "steps of 300 ns GPU time" || fmt.Sprint(c.Kinds[0].PerfectSteps,
		c.Kinds[1].PerfectSteps, c.Kinds[2].NormalSteps, c.Kinds[2].PerfectSteps) != "[1] [2 3 4 5 6] [1] [0]" {
		t.Errorf("have %+v", c.Kinds)
	}
	if builds := Compare(normal, perfect, gain.Builds{"a", "b"}); warned(builds, KindsApart, "") {
		t.Errorf("of builds no gain is asked: %v", builds.Warnings)
	}
	if alone := c.Kinds[3]; alone.LeftOut != 1 || len(alone.NormalSteps) > 0 || alone.Step.NormalNS.Defined() {
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
	c := Compare(arm(prefill, decode), perfect, gain.Builds{})
	if i := len(c.Warnings) - 1; c.Warnings[i].Code != KindsApart || c.Warnings[i].Args["why"] != "unlike" {
		t.Errorf("decode of 32 and 64 tokens: %v", c.Warnings)
	}
	if other := c.Kinds[1]; other.Gain.Defined() || len(other.NormalSteps)+len(other.PerfectSteps) > 0 ||
		other.Step.NormalNS.Defined() || other.LeftOut != 4 {
		t.Errorf("%v, %+v", reasons(c), c.Kinds)
	}
	perfect = arm("execute_context_1(100)_generation_0(0)", decode)
	perfect.Arm = "perfect"
	for i := range perfect.Cells { // nor another
		perfect.Cells[i].Instances++
	}
	noGain(t, "100 tokens", Compare(arm(prefill, decode), perfect, gain.Builds{}))
}

// Steps of one kind are paired by equal tokens, or all where about as many; kinds by ranges of either arm.
func TestPairsOfSteps(t *testing.T) {
	kind := func(tokens int, kernels ...string) *stepKind {
		k := &stepKind{trace.StepKind{Steps: []int{0}, Kernels: kernels}, map[int]of.Batch{}, 1}
		if tokens > 0 {
			k.batches[0] = of.BatchOf(fmt.Sprintf("execute_context_1(%d)_generation_0(0)", tokens))
		}
		return k
	}
	for tokens, paired := range map[[2]int]int{{1000, 1000}: 1, {1000, 1010}: 1, {1010, 1000}: 1, {990, 1000}: 0,
		{1000, 990}: 0, {0, 1000}: 1, {1000, 0}: 1} {
		if p := pairOf(kind(tokens[0]), kind(tokens[1])); len(p.steps[0]) != paired || p.leftOut() != 2-2*paired {
			t.Errorf("%v tokens: %v", tokens, p.steps)
		}
	}
	for tokens, want := range map[[2]int][]float64{{1000, 500}: {1. / 3, 0.5, 1}, {1000, 0}: {1. / 3, 0.001, 1}} {
		if have := kind(tokens[0], "a", "b").likeness(kind(tokens[1], "b", "c")); !slices.Equal(have, want) {
			t.Errorf("%v tokens: have %v, want %v", tokens, have, want)
		}
	}
	one := mixed([][]string{{"a"}}, []int{0, 0}, make([]string, 2), []int64{400, 100})
	if c := Compare(one, one, gain.Builds{}); len(c.Kinds) > 0 {
		t.Errorf("all steps of one kind: %+v", c.Kinds)
	}
}

// A point of a campaign is of the kind of steps with as many tokens; the gain of all is not of one kind of several.
func TestPointsOfKinds(t *testing.T) {
	at := func(value float64, gained router.Number) gain.Comparison {
		return gain.Comparison{Arm: gain.Perfect, Value: value, Gain: gain.Gain{Interval: gain.Interval{Estimate: gained}}}
	}
	for _, k := range []struct {
		kinds  []KindChange
		points []gain.Comparison
		want   string // the gain, whether it is of the first kind, and whether the first and the last one's are measured
	}{
		{[]KindChange{{Tokens: 8192}, {Tokens: 32}}, []gain.Comparison{at(8192, 0.2), at(32, 0.1)}, "0.2 true true true"},
		{[]KindChange{{Tokens: 8192}, {Tokens: 32}}, []gain.Comparison{at(32, 0.1)}, "0.3 false false true"},
		{[]KindChange{{Tokens: 8192}, {}}, []gain.Comparison{at(0, 0.3)}, "0.3 false false false"},
		{[]KindChange{{Tokens: 32}}, nil, "0.3 true false false"},
	} {
		c := Comparison{Kinds: k.kinds}
		measured, _, own := c.ofKind(gain.Result{Comparisons: k.points, Gain: at(0, 0.3).Gain})
		first, last := k.kinds[0].Measured != nil, k.kinds[len(k.kinds)-1].Measured != nil
		if have := fmt.Sprint(measured.Estimate, own, first, last); have != k.want {
			t.Errorf("%+v: have %s", k, have)
		}
	}
}
