package ranges

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Batch is what the range of a step says it runs. A step that holds any prompt is
// prefill, whatever else it holds.
type Batch struct {
	Named, Prefill bool
	Tokens         int // 0 where the range does not say
	// Dummy is set for a step without a request: a data-parallel rank of vLLM runs its layers for the tokens of
	// others all the same.
	Dummy bool
	Arm   string // of the hook's switch; empty where the range names none, or one that lapsed
}

// inner stands between the names of the hook's range and of the engine's.
const inner = " > "

// expired is behind the name of an arm whose order lapsed: the step ran another.
const expired = " expired"

// The ranges of engines' steps: the hook's, vLLM's worker, SGLang's model runner and ATOM's,
// TensorRT-LLM's executor. In vLLM's, sums of squares stand behind sq.
var (
	hookStep     = regexp.MustCompile(`^moebalance step=\d+ tokens=(\d+) sequence=\d+ arm=`)
	vllmStep     = regexp.MustCompile(`context_(\d+)\((?:sq)?(\d+)[^)]*\)_generation_(\d+)\((?:sq)?(\d+)`)
	sglangStep   = regexp.MustCompile(`^(?:step\[(\w+) |(prefill|decode)\[)bs=(\d+)(.*)\]$`)
	sglangTokens = regexp.MustCompile(` (?:toks?|[cg]_sq|ext|dec)=(\d+)`)
	tensorrtStep = regexp.MustCompile(
		`^\[Executor\] _forward_step ?\d*: (\d+) ctx reqs, (?:\d+ ctx tokens, )?(\d+) gen reqs`)
)

// BatchOf reads the name of the range of a step.
func BatchOf(name string) Batch {
	if m := hookStep.FindStringSubmatch(name); m != nil {
		arm, own, _ := strings.Cut(name[len(m[0]):], inner)
		b := BatchOf(own)
		if b.Tokens == 0 {
			b.Tokens, _ = strconv.Atoi(m[1])
		}
		if !strings.HasSuffix(arm, expired) {
			b.Arm = arm
		}
		return b
	}
	number := func(text string) int { n, _ := strconv.Atoi(text); return n }
	if m := vllmStep.FindStringSubmatch(name); m != nil {
		return Batch{Named: true, Prefill: number(m[1]) > 0, Tokens: number(m[2]) + number(m[4]),
			Dummy: number(m[1])+number(m[3]) == 0}
	}
	if m := sglangStep.FindStringSubmatch(name); m != nil {
		tokens := 0
		for _, n := range sglangTokens.FindAllStringSubmatch(m[4], -1) {
			tokens += number(n[1])
		}
		switch strings.ToLower(m[1] + m[2]) {
		case "decode":
			return Batch{Named: true, Tokens: max(tokens, number(m[3]))}
		case "extend", "mixed", "prefill":
			return Batch{Named: true, Prefill: true, Tokens: tokens}
		}
	}
	if m := tensorrtStep.FindStringSubmatch(name); m != nil {
		return Batch{Named: true, Prefill: number(m[1]) > 0}
	}
	return Batch{}
}

// EngineOf is the engine that names a step so, as 'place' calls it: execute_context_1(8)_generation_0(0) → vllm.
func EngineOf(name string) string {
	for mark, engine := range map[string]string{"execute_": "vllm", "step[": "sglang", "[Executor] ": "trtllm"} {
		if strings.Contains(name, mark) {
			return engine
		}
	}
	return ""
}

// String is what the batch is, empty where the range does not say.
func (b Batch) String() string {
	switch {
	case !b.Named:
		return ""
	case b.Dummy:
		return "dummy"
	case b.Prefill:
		return "prefill"
	}
	return "decode"
}

// BatchesName is what batches of one kind have in common, with their tokens where all say
// them: prefill, 7217 to 8192 tokens.
func BatchesName(list []Batch) string {
	low, high := list[0].Tokens, list[0].Tokens
	for _, b := range list {
		low, high = min(low, b.Tokens), max(high, b.Tokens)
	}
	name, tokens := list[0].String(), fmt.Sprintf("%d to %d tokens", low, high)
	switch {
	case low == 0:
		return name
	case high == 1:
		tokens = "1 token"
	case low == high:
		tokens = fmt.Sprintf("%d tokens", low)
	}
	return strings.TrimPrefix(name+", "+tokens, ", ")
}
