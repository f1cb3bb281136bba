package kernel

import (
	"fmt"
	"regexp"
	"strconv"
)

// Batch is what the range of a step says it runs. A step that holds any prompt is
// prefill, whatever else it holds.
type Batch struct {
	Named, Prefill bool
	Tokens         int // 0 where the range does not say
}

// The ranges of engines' steps: vLLM's worker, SGLang's scheduler, TensorRT-LLM's executor.
var (
	vllmStep     = regexp.MustCompile(`context_(\d+)\((\d+)\)_generation_(\d+)\((\d+)\)`)
	sglangStep   = regexp.MustCompile(`^step\[([A-Z_]+) bs=(\d+)(?: toks=(\d+))?`)
	tensorrtStep = regexp.MustCompile(`^\[Executor\] _forward_step \d+: (\d+) ctx reqs, (\d+) gen reqs`)
)

// BatchOf reads the name of the range of a step.
func BatchOf(name string) Batch {
	number := func(text string) int { n, _ := strconv.Atoi(text); return n }
	if m := vllmStep.FindStringSubmatch(name); m != nil {
		return Batch{true, number(m[1]) > 0, number(m[2]) + number(m[4])}
	}
	if m := sglangStep.FindStringSubmatch(name); m != nil {
		switch m[1] {
		case "DECODE":
			return Batch{true, false, number(m[2])}
		case "EXTEND", "MIXED":
			return Batch{true, true, number(m[3])}
		}
	}
	if m := tensorrtStep.FindStringSubmatch(name); m != nil {
		return Batch{true, number(m[1]) > 0, 0}
	}
	return Batch{}
}

// String is what the batch is, empty where the range does not say.
func (b Batch) String() string {
	switch {
	case !b.Named:
		return ""
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
	switch name := list[0].String(); {
	case low == 0:
		return name
	case high == 1:
		return name + ", 1 token"
	case low == high:
		return fmt.Sprintf("%s, %d tokens", name, low)
	default:
		return fmt.Sprintf("%s, %d to %d tokens", name, low, high)
	}
}
