package kernel

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// seenNames are the names below each rule of rulesText, in its order.
var seenNames = func() (names [][]string) {
	for line := range strings.Lines(rulesText) {
		if name, below := strings.CutPrefix(line, "\t"); below {
			names[len(names)-1] = append(names[len(names)-1], strings.TrimSpace(name))
		} else if line[0] != '#' && strings.Contains(line, "\t") {
			names = append(names, nil)
		}
	}
	return names
}()

// Every rule decides the names that it is there for, in the spelling of every
// version, and none before it does.
func TestEveryRuleDecidesItsOwnNames(t *testing.T) {
	if len(seenNames) != len(kernelRules) {
		t.Fatalf("%d rules, but names for %d", len(kernelRules), len(seenNames))
	}
	for i, names := range seenNames {
		if len(names) == 0 {
			t.Errorf("%s: no name", kernelRules[i].function)
		}
		for _, name := range names {
			for _, spelled := range []string{name, spelledByPyTorch(name), spelledIn2021(name)} {
				if got := ruleOf(spelled); got != i {
					t.Errorf("%s\n\twant rule %d %s,\n\thave %d", spelled, i, kernelRules[i].function, got)
				}
				if want, have := NormalName(name), NormalName(spelled); want != have {
					t.Errorf("%s is spelled\n\t%s and\n\t%s", name, want, have)
				}
			}
		}
	}
	for _, r := range kernelRules {
		if !slices.Contains(Phases, r.class.Phase) || r.library == "" {
			t.Errorf("%s: phase %q, library %q", r.function, r.class.Phase, r.library)
		}
	}
}

var literal = regexp.MustCompile(`\((int|bool|unsigned int|unsigned long|long|unsigned char)\)(-?\d+)`)

// spelledByPyTorch writes foo<(int)4, (bool)1, (unsigned int)2>(int *) as
// foo<4, true, 2u>(int*).
func spelledByPyTorch(name string) string {
	name = literal.ReplaceAllStringFunc(name, func(s string) string {
		m := literal.FindStringSubmatch(s)
		switch m[1] {
		case "bool":
			return map[string]string{"0": "false", "1": "true"}[m[2]]
		case "unsigned int":
			return m[2] + "u"
		case "unsigned long":
			return m[2] + "ul"
		case "long":
			return m[2] + "l"
		}
		return m[2]
	})
	return strings.NewReplacer("<unnamed>", "(anonymous namespace)", " *", "*", " &", "&").Replace(name)
}

// spelledIn2021 writes the same as foo<4, 1, 2>(int*).
func spelledIn2021(name string) string {
	return strings.NewReplacer(" *", "*", " &", "&").Replace(literal.ReplaceAllString(name, "$2"))
}

// Names that resemble a rule's and are something else.
func TestTrapsForTheClassifier(t *testing.T) {
	for want, names := range map[Phase][]string{
		PhaseUnknown: {
			"dispatch", "combine", "my::dispatch_kernel", // short names of DeepEP collide with users' kernels
			"device_kernel", "sigmoid_gate_attention", "shared_expert_gate", "", ">>>><(",
			"void at::native::vectorized_elementwise_kernel<(int)4, at::native::sigmoid_kernel_cuda(T &)>(int)",
			// functors and parameters are not the kernel
			"void at::native::elementwise_kernel<(int)128, void vllm::moe::moe_sum_kernel<float>(int)>(int)",
			"void mine(cutlass::gemm::GroupProblemShape<int>, vllm::moe::topkGatingSoftmax<int>)",
			"void at::native::elementwise_kernel<(int)8, at::native::<unnamed>::silu_kernel(T &)::[lambda()]>",
			"void cub::DeviceRadixSortDispatch<int>(int)"},
		PhaseOther: {"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int>>>(T1)"},
	} {
		for _, name := range names {
			for _, spelled := range []string{name, spelledByPyTorch(name)} {
				if got := Classify(spelled).Phase; got != want {
					t.Errorf("%q: want %q, have %q by rule %d", spelled, want, got, ruleOf(spelled))
				}
			}
		}
	}
}

// Any bytes: no panic, and spelling twice changes nothing more.
func FuzzClassify(f *testing.F) {
	for _, names := range seenNames {
		f.Add(names[0])
	}
	f.Fuzz(func(t *testing.T, name string) {
		if c := Classify(name); !slices.Contains(Phases, c.Phase) {
			t.Errorf("%q: %+v", name, c)
		}
		if i := ruleOf(name); i >= len(kernelRules) {
			t.Errorf("%q: rule %d", name, i)
		}
	})
}

// Each engine puts other arguments before the number of experts, or none.
func TestGateExperts(t *testing.T) {
	for name, want := range map[string]int{
		"void vllm::moe::topkGating<8, 128, 4, 16, 32, int, (vllm::moe::ScoringFunc)0>(T*)": 128,
		"void topkGatingSoftmax<float, (int)8, (int)256, (int)4, (int)16>(float *)":         256,
		"void topkGatingSigmoid<__nv_bfloat16, 4, 128, 4, 8>()":                             128,
		"topkGatingSoftmax":                             0,
		"void at::native::sbtopk::gatherTopK<8, 128>()": 0,
	} {
		if n := GateExperts(name); n != want {
			t.Errorf("%s: %d", name, n)
		}
	}
}
