package kernel

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/moebalance/moebalance/compare/steps"
)

// Class is what a kernel's own name says about it.
type Class struct {
	Phase        Phase
	Library      string
	Collective   bool         // its time is mostly waiting for other ranks, or cannot be told from waiting
	GEMM         bool         // a GEMM of routed experts
	MayBeExperts bool         // a GEMM of a library that serves routed and dense layers under one name
	Given        bool         // by the user's rule, which is the strongest evidence
	Fused        []Phase      // what the kernel does in one, where that is more than its phase
	Launch       steps.Launch // what it is to steps.Find, but for its number and time
}

// FusedExperts reports a kernel that runs experts and more in one, so that how long a rank's
// experts took cannot be told.
func (c Class) FusedExperts() bool { return c.Phase == PhaseExperts && len(c.Fused) > 0 }

// kernelRule is one row of the classifier, under a comment on where the names were seen. The first rule whose
// function and arguments match the spelled name decides.
type kernelRule struct {
	class     Class // but for its library
	library   string
	function  string // regular expression at the start of a component of the function's qualified name
	arguments string // regular expression anywhere in its template arguments
}

// compiled are the expressions of kernelRules.
var compiled = sync.OnceValue(func() (list []struct{ function, arguments *regexp.Regexp }) {
	for _, r := range kernelRules {
		list = append(list, struct{ function, arguments *regexp.Regexp }{
			regexp.MustCompile(`^(?:` + r.function + `)`), regexp.MustCompile(r.arguments)})
	}
	return list
})

// Rule is a rule of the user: kernels whose demangled name it matches anywhere
// are of the phase, whatever else their name says. As experts they count as GEMMs of
// experts, from whose time imbalance is computed.
type Rule struct {
	Name  *regexp.Regexp
	Phase Phase
}

// ParseRule reads PHASE=REGEX.
func ParseRule(text string) (k Rule, err error) {
	phase, expression, _ := strings.Cut(text, "=")
	if k.Phase = PhaseOf(strings.TrimSpace(phase)); strings.TrimSpace(expression) == "" || k.Phase == "" {
		return k, fmt.Errorf("%q: want PHASE=REGEX with one of the phases %s", text,
			strings.Join(slices.Sorted(maps.Keys(phaseWords)), ", "))
	}
	k.Name, err = regexp.Compile(strings.TrimSpace(expression))
	return k, err
}

// Classes classifies names, by the user's rules first.
func Classes(names []string, rules []Rule) []Class {
	list := make([]Class, len(names))
	for i, name := range names {
		at := slices.IndexFunc(rules, func(k Rule) bool { return k.Name.MatchString(name) })
		if at < 0 {
			list[i] = Classify(name)
			continue
		}
		phase := rules[at].Phase
		list[i] = Class{Phase: phase, Library: "--phase", Collective: phase == PhaseCommunication,
			GEMM: phase == PhaseExperts, Given: true}.asLaunch(name)
	}
	return list
}

// Bounds on what is read of a function, which is matched with every rule from each of its
// components on. Its template arguments, ten thousand bytes with CUTLASS, are only searched for
// words.
const (
	longestFunction = 1 << 12
	mostComponents  = 64
)

// Classify reads a kernel's demangled name, of any version of nsys or of
// PyTorch's profiler. A name that no rule knows is unknown.
var Classify = remembered(func(name string) Class {
	if i := ruleOf(name); i >= 0 {
		c := kernelRules[i].class
		c.Library = kernelRules[i].library
		return c.asLaunch(name)
	}
	return Class{Phase: PhaseUnknown}.asLaunch(name)
})

// remembered reads each name once, for the ranks of a run have the same kernels; very long
// names would take more memory than time.
func remembered[T any](read func(name string) T) func(string) T {
	var known sync.Map // T by name
	return func(name string) T {
		if old, ok := known.Load(name); ok {
			return old.(T)
		}
		t := read(name)
		if len(name) <= 4096 {
			known.Store(strings.Clone(name), t)
		}
		return t
	}
}

// gate finds the number of experts among the template arguments of the gate that
// TensorRT-LLM, vLLM and SGLang share: (type,) values per thread, experts, ….
// Source: vllm csrc/moe/topk_softmax_kernels.cu, sgl-kernel/csrc/moe/moe_topk_*_kernels.cu.
var gate = regexp.MustCompile(`(?:^|::)topkGating(?:Softmax|Sigmoid)?<(?:[A-Za-z_][\w:]*, ?)?\d+, ?(\d{1,9})[,>]`)

// GateExperts is the number of experts that a gate's kernel is compiled for; 0 where the name does not tell it.
func GateExperts(name string) (experts int) {
	if strings.Contains(name, "topkGating") { // names are many, and normalizing them takes longer
		if m := gate.FindStringSubmatch(NormalName(name)); m != nil {
			experts, _ = strconv.Atoi(m[1])
		}
	}
	return experts
}

// ruleOf is the number of the rule that decides, −1 without one.
func ruleOf(name string) int {
	function, arguments := Parts(anonymous.Replace(strings.TrimPrefix(name, "void ")))
	beginnings := componentsOf(function[:min(len(function), longestFunction)])
	for i, r := range compiled() {
		if slices.ContainsFunc(beginnings, r.function.MatchString) && r.arguments.MatchString(arguments) {
			return i
		}
	}
	return -1
}

// componentsOf is a qualified name from each of its components on. To look for a
// rule there, and not anywhere in the name, takes a fraction of the time.
func componentsOf(function string) []string {
	list := []string{function}
	for {
		_, rest, found := strings.Cut(function, "::")
		if !found || len(list) == mostComponents {
			return list
		}
		list, function = append(list, rest), rest
	}
}

// Parts cuts a demangled name into the qualified name of the function and
// its template arguments; the parameters are left out. So a functor among the
// arguments of at::native::elementwise_kernel never passes for the kernel, and in
// std::enable_if<((8)>(0)), void>::type vllm::rms_norm_kernel<8>(int*) the first > ends no arguments.
func Parts(name string) (function, arguments string) {
	var f, a strings.Builder
	depth, outside := 0, []int{0} // of brackets, and what it was at each parenthesis that is open
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c == '<':
			if depth++; depth == 1 {
				continue
			}
		case c == '>' && depth > outside[len(outside)-1] && name[i-1] != '-':
			if depth--; depth == 0 {
				a.WriteByte(';')
				continue
			}
		case c == '(' && depth == 0:
			return f.String(), a.String()
		case c == '(':
			outside = append(outside, depth)
		case c == ')' && len(outside) > 1:
			outside = outside[:len(outside)-1]
		}
		if depth == 0 {
			f.WriteByte(c)
		} else {
			a.WriteByte(c)
		}
	}
	return f.String(), a.String()
}

// The same kernel's name is spelled differently by nsys of 2021, by PyTorch's
// profiler and by nsys since 2022: foo<128, true>(int*), foo<128u, true>(int*)
// and foo<(int)128, (bool)1>(int *).
var (
	castPattern = regexp.MustCompile(
		`\((?:int|bool|char|signed char|unsigned char|short|unsigned short|unsigned int|long|unsigned long|long long|` +
			`unsigned long long)\)(-?\d)`)
	suffixPattern = regexp.MustCompile(`([<, (]-?\d+)(?:ull|ul|ll|u|l)\b`)
	boolPattern   = regexp.MustCompile(`[<,] ?(?:true|false)\b`)
	bits          = strings.NewReplacer("true", "1", "false", "0")
	lambdaPattern = regexp.MustCompile(`\[lambda\(([^()]*)\) \(instance (\d+)\)\]`)
	anonymous     = strings.NewReplacer("(anonymous namespace)::", "", "<unnamed>::", "")
	spaces        = strings.NewReplacer(" *", "*", " &", "&", "> >", ">>", "operator ()", "operator()")
)

// NormalName spells a demangled name in one way for every version:
// without return type void, anonymous namespaces, casts and suffixes of
// literals, and spaces before * and &.
var NormalName = remembered(func(name string) string {
	name = spaces.Replace(anonymous.Replace(strings.TrimPrefix(name, "void ")))
	name = castPattern.ReplaceAllString(name, "$1")
	name = suffixPattern.ReplaceAllString(name, "$1")
	name = boolPattern.ReplaceAllStringFunc(name, bits.Replace)
	return lambdaPattern.ReplaceAllString(name, "{lambda($1)#$2}")
})

var tiles = regexp.MustCompile(`\d+x\d+`)

// wrappers are templates around a kernel of any kind, which is their first argument.
var wrappers = []string{"cutlass::device_kernel<", "cutlass::Kernel<", "cutlass::Kernel2<", "flash::enable_sm90<",
	"flash::enable_sm90_or_later<", "flash::enable_sm80_to_sm89<", "at::cuda::detail::enable_3x_kernel_for_sm9x<"}

// Family is the name up to its tile sizes, template or call arguments: the variants of
// a family do the same work. Of cutlass::device_kernel<flash::FlashAttnFwdCombine<…>> it is
// flash::FlashAttnFwdCombine.
func Family(name string) string {
	name = NormalName(name)
	for i := 0; i < len(wrappers); i++ {
		if rest, wrapped := strings.CutPrefix(name, wrappers[i]); wrapped {
			name, i = rest, -1
		}
	}
	if i := strings.IndexAny(name, "<("); i > 0 {
		name = name[:i]
	}
	if at := tiles.FindStringIndex(name); at != nil && at[0] > 0 {
		name = strings.TrimRight(name[:at[0]], "_")
	}
	return name
}
