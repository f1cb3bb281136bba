package ranges

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/moebalance/moebalance/compare/kernel"
)

// Patterns turn the names of ranges into steps, layers, experts and phases.
// Each is a regular expression with some of the named groups step, layer,
// expert (decimal numbers) and phase (a word of phaseWords). For each group the
// first pattern that gives it decides, user's patterns before the built-in ones.
//
// A step group that matches nothing stands for a step without a number: such
// steps are numbered in the order in which they begin.
type Patterns struct {
	rules    []rule
	compiled []*regexp.Regexp // their patterns
}

// rule is one pattern, and the phase it means if it has no such group. The phase of a module gives way to what a
// kernel's own name knows: a module may hold more than its name says (a FusedMoE routes, exchanges and computes).
type rule struct {
	pattern string
	phase   kernel.Phase
	module  bool
}

// Label is where a range's name puts the work in it. The step is unnumbered for a step without a number.
type Label struct {
	Location
	Name string // of the range
}

const unnumbered = -2

// PhaseIgnored is work that the program itself asks to leave out: bookkeeping
// among the model's own. No result has it, only a warning that says how much.
const PhaseIgnored kernel.Phase = "ignored"

// builtIn are the default patterns with their sources.
var builtIn = []rule{
	// the hook of moebalance
	{`^moebalance step=(?P<step>\d+) tokens=\d+ sequence=\d+ arm=`, "", false},
	// the hook of moebalance
	{`^moebalance layer=(?P<layer>\d+)(?: (?P<phase>router))?$`, "", false},
	// TensorRT-LLM pyexecutor, before 1.0 without a number
	{`^\[Executor\] _forward_step ?(?P<step>\d*):`, "", false},
	// TensorRT-LLM layer_wise_benchmarks
	{`^layer_wise_benchmarks layer_idx (?P<layer>\d+)`, "", false},
	// TensorRT-LLM layer_wise_benchmarks: what its calibrator does between the layers
	{`^layer_wise_benchmarks ignore$`, PhaseIgnored, false},
	// TensorRT-LLM layer_wise_benchmarks, runs
	{`^b=\d+ s=\d+ .*\bEP\d+(?P<step>)$`, "", false},
	// usual step markers
	{`^(?:[Ss]tep|[Ii]teration|iter|forward_step|decode_step)[ _:#=]*(?P<step>\d+)\b`, "", false},
	// PyTorch profiler
	{`^ProfilerStep#(?P<step>\d+)`, "", false},
	// vLLM model runner; worker, by requests and tokens, which without a request runs nothing or a dummy
	{`^execute_(?:model\b|(?:\d+_)?context_\d+\(.*\)_generation_\d+\().*(?P<step>)`, "", false},
	// vLLM worker of 2025, by requests: one of the cached ones may still be prefilled in chunks
	{`^execute_new_(?:[1-9]\d*_cached_\d+|0_cached_[1-9]\d*)(?P<step>)$`, "", false},
	// SGLang model runner, by kind of batch: step[DECODE bs=32], step[EXTEND bs=15 toks=15360]; ATOM
	{`^(?:step\[\w+ |prefill\[|decode\[)bs=\d+.*\](?P<step>)$`, "", false},
	// backward passes: mlp(B) and mlp(W) of DualPipe, GroupedMmBackward0 of PyTorch's emit_nvtx and autograd::engine;
	// kernels that say what they are keep their phase
	{`\((?:B|W|BW)\)$|(?:^|[ ./_:])(?:[Bb]ackward|bwd)(?:$|[ ./_:,(])|Backward\d+(?:$|[ ,:(])`, kernel.PhaseOther, true},
	// the captures in testdata
	{`^layer (?P<layer>\d+) (?P<phase>router|dispatch|experts|combine|attention)$`, "", false},
	// the captures in testdata
	{`^layer (?P<layer>\d+) expert (?P<expert>\d+)$`, kernel.PhaseExperts, false},
	// modules: model.layers.3.mlp, transformer.h.3, blk.3, decoder/layers_3; no other list counts all layers
	{`(?:^|[. /'"])(?:layers[._\[/]|(?:layer|h|blocks?|blk)[.\[/])(?P<layer>\d+)(?:\b|_)`, "", false},
	// in words: Layer 3, layer_idx=3, decoder_layer_3; layers=3 is how many there are
	{`(?:^|[ ./'":,(\[]|(?:decoder|transformer|moe|model)_)(?i:layer)(?:_?(?i:idx|id|index|number))?(?:[ _.:=#\[]{0,2}|` +
		`-)(?P<layer>\d+)(?:\b|_)`, "", false},
	// classes: DeepseekV3DecoderLayer_3, as PyTorch's profiler numbers the instances of a class in order
	{`(?:^|[ ./'":])\w*(?:Decoder|Transformer)Layer[ _.:#\[]?(?P<layer>\d+)(?:\b|_)`, "", false},
	// shared experts and dense MLPs: they serve every token, so no routing loads them
	{`(?:^|[._ /])shared_experts?(?:\b|_)|^(?:nn\.Module: )?(?:\w*SharedExperts?|GatedMLP)(?:_\d+)?$`, kernel.PhaseOther,
		true},
	// modules: mlp.experts.17; local_experts count the experts of a rank
	{`(?:^|[. /'"])experts[._\[/](?P<expert>\d+)(?:\b|_)`, kernel.PhaseExperts, false},
	// in words: Expert 17, expert_id=17; experts=17 is how many there are
	{`(?:^|[ ./'":,(\[]|\d_|(?:moe|routed)_)(?i:expert)(?:_?(?i:idx|id|index))?[ _.:=#\[]{0,2}(?P<expert>\d+)(?:\b|_)`,
		kernel.PhaseExperts, false},
	// modules and classes: self_attn, MLA
	{`(?:^|[._ /])(?:attn|attention)\b|^(?:nn\.Module: )?(?:MLA|\w*Attention)(?:_\d+)?$`, kernel.PhaseAttention, true},
	// the phases by their own names
	{`(?i)(?:^|[ /])(?P<phase>router|dispatch|experts|combine|attention)(?:$|[:'" (])`, "", false},
	// modules and classes: mlp.gate, DeepseekV3Gate
	{`(?:^|[._ /])(?:gate|router|topk)(?:$|[:'" (])|^(?:nn\.Module: )?\w*(?:Mo[Ee]|V3|Top[Kk])Gate(?:_\d+)?\b|` +
		`Router(?:_\d+)?\b`, kernel.PhaseRouter, true},
	// modules and classes: mlp.experts, CutlassFusedMoE, MoE of TensorRT-LLM
	{`^(?:nn\.Module: )?(?:\w*FusedMo[Ee]\w*|(?:Configurable|WideEP)?MoE(?:_\d+)?|\w*Experts(?:_\d+)?)$|(?:^|` +
		`[. /])experts\b`, kernel.PhaseExperts, true},
}

// NewPatterns puts the user's patterns before the built-in ones. An error names
// the pattern and what is wrong with it.
func NewPatterns(user ...string) (*Patterns, error) {
	p := &Patterns{}
	for _, text := range user {
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, err
		}
		groups := slices.DeleteFunc(slices.Clone(re.SubexpNames()), func(g string) bool { return g == "" })
		if len(groups) == 0 || slices.ContainsFunc(groups, func(g string) bool {
			return !slices.Contains([]string{"step", "layer", "expert", "phase"}, g)
		}) {
			return nil, fmt.Errorf("pattern %q: want a named group step, layer, expert or phase, such as (?P<layer>\\d+)", text)
		}
		p.rules, p.compiled = append(p.rules, rule{text, "", false}), append(p.compiled, re)
	}
	for _, r := range builtIn {
		p.rules, p.compiled = append(p.rules, r), append(p.compiled, regexp.MustCompile(r.pattern))
	}
	return p, nil
}

// Label reads one name. A number beyond 31 bits is not one. What a user called an arm says
// nothing.
func (p *Patterns) Label(name string) Label {
	l := Label{Location: Unattributed, Name: name}
	l.Operator = OperatorOf(name)
	if m := hookStep.FindStringIndex(name); m != nil {
		name = name[:m[1]]
	}
	numbers := map[string]*int32{"step": &l.Step, "layer": &l.Layer, "expert": &l.Expert}
	for i, r := range p.rules {
		at := p.compiled[i].FindStringSubmatchIndex(name)
		if at == nil {
			continue
		}
		for g, group := range p.compiled[i].SubexpNames() {
			if group == "" || at[2*g] < 0 {
				continue
			}
			text, to := name[at[2*g]:at[2*g+1]], numbers[group]
			switch n, err := strconv.ParseInt(text, 10, 32); {
			case to == nil:
				l.Phase = cmp.Or(l.Phase, kernel.PhaseOf(text))
			case *to != NoID: // an earlier pattern found it
			case err == nil && n >= 0:
				*to = int32(n)
			case group == "step" && text == "":
				*to = unnumbered
			}
		}
		if l.Phase == "" {
			l.Phase, l.Module = r.phase, r.module
		}
	}
	return l
}
