package nsys

import (
	"regexp"
	"strings"
)

// class is what a kernel's own name says about it.
type class struct {
	phase      Phase
	library    string
	collective bool // its time is mostly waiting for other ranks
}

// kernelRule is one row of the classifier: the first rule that matches the
// normalised name decides.
type kernelRule struct {
	rule       string // regular expression over the normalised name
	phase      Phase
	library    string
	source     string // where such a name was seen
	collective bool
}

// kernelRules is the classifier, specific rules before general ones. A name
// that no rule knows stays unknown: a guess would be counted as knowledge.
var kernelRules = []kernelRule{
	{`^nccl(?:Dev)?Kernel`, PhaseCommunication, "NCCL", "captures", true},
	{`\bdeep_ep::.*\b(?:notify_)?dispatch`, PhaseDispatch, "DeepEP", "deep_ep csrc/kernels", true},
	{`\bdeep_ep::.*\b(?:cached_notify_)?combine`, PhaseCombine, "DeepEP", "deep_ep csrc/kernels", true},
	{`\bdeep_ep::layout::`, PhaseDispatch, "DeepEP", "deep_ep csrc/kernels", false},
	{`GroupProblemShape`, PhaseExperts, "CUTLASS", "captures: torch._grouped_mm", false},
	{`prepare_grouped_gemm_data`, PhaseExperts, "PyTorch", "captures: torch._grouped_mm", false},
	{`topkGatingSoftmax|topkGatingSigmoid|moeSoftmax|moeTopK|grouped_topk|moe_fused_gate|sbtopk::gatherTopK`, PhaseRouter, "vLLM, SGLang, PyTorch", "csrc/moe", false},
	{`^nvjet_|splitKreduce_kernel`, PhaseOther, "cuBLAS", "captures", false},
}

var compiledKernelRules = func() []*regexp.Regexp {
	res := make([]*regexp.Regexp, len(kernelRules))
	for i, r := range kernelRules {
		res[i] = regexp.MustCompile(r.rule)
	}
	return res
}()

// classify reads a kernel's demangled name, of any nsys version.
func classify(name string) class {
	n := normalKernelName(name)
	for i, re := range compiledKernelRules {
		if re.MatchString(n) {
			r := kernelRules[i]
			return class{r.phase, r.library, r.collective}
		}
	}
	return class{phase: PhaseUnknown}
}

// casts are how nsys since 2022 writes template arguments: foo<(int)4> is what
// 2021's files and PyTorch print as foo<4>.
var casts = regexp.MustCompile(`\((?:int|bool|unsigned int|unsigned long|long|unsigned char)\)([-\d])`)

// normalKernelName spells a demangled name the same way for every version.
func normalKernelName(name string) string {
	name = strings.TrimPrefix(name, "void ")
	name = casts.ReplaceAllString(name, "$1")
	return namespaces.Replace(name)
}

var namespaces = strings.NewReplacer("(anonymous namespace)", "<unnamed>", " *", "*", " &", "&")
