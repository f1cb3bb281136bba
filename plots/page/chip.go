package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer"
)

// chip is one label of evidence: all caveats of a code and weight, which open as sentences.
type chip struct {
	Label    string
	Severity answer.Severity
	Texts    []string
}

// Chips are the caveats of the answer by code, in their order.
func (p program) Chips() (out []chip) {
	var codes []string
	for _, c := range p.Answer.Caveats {
		key := string(c.Severity) + " " + c.Code
		at := slices.Index(codes, key)
		if at < 0 {
			at, codes, out = len(codes), append(codes, key), append(out, chip{Label: label(c), Severity: c.Severity})
		}
		out[at].Texts = append(out[at].Texts, c.String())
	}
	for i, c := range out {
		if n := len(c.Texts); n > 1 {
			out[i].Label += fmt.Sprintf(" (%d)", n)
		}
	}
	return out
}

// label says in a few words what a caveat is about. A sign says how much it weighs.
func label(c answer.Caveat) string {
	text := strings.ReplaceAll(c.Code, "_", " ")
	switch c.Severity {
	case answer.Unknown:
		return "? " + text + ": not checked"
	case answer.Doubt:
		return "✗ " + cmp.Or(labels[c.Code], text)
	case answer.Warn:
		return "▲ " + cmp.Or(labels[c.Code], text)
	}
	return "○ " + cmp.Or(labels[c.Code], text)
}

// labels are of codes that do not speak for themselves, or name what a check wants rather than
// what it found.
var labels = map[string]string{
	"arm_unknown":         "arms as labeled",
	"arms_look_alike":     "arms look alike",
	"balance_unproved":    "balance not proved",
	"balance_claimed":     "balance claimed, not measured",
	"blocks":              "steps and layers unknown",
	"carry_over":          "launches affect the next",
	"clocks":              "GPU clocks differ",
	"counts_order":        "order of counted layers assumed",
	"cumulative":          "counts since engine start",
	"dense_layers":        "dense layers excluded",
	"doubles":             "copies share a rank",
	"drift":               "values drift",
	"equal_work":          "different work",
	"equal_work_unknown":  "equal work not shown",
	"explained_gain":      "gain beyond even ranks",
	"first_attempts":      "launches repeated",
	"fresh_prompts":       "prompts repeated",
	"fused_experts":       "work and waiting in one kernel",
	"global":              "experts on any node",
	"graph_capture":       "graphs captured before recording",
	"graph_mode":          "CUDA graphs hide kernels",
	"independent_pairs":   "pairs depend on each other",
	"inferred":            "layers inferred",
	"inferred_beside":     "layers partly inferred",
	"inferred_steps":      "steps inferred",
	"judged_learned":      "judged traffic resembles learned",
	"kernel_tactics":      "kernel variants differ",
	"kind_in_one_arm":     "steps of one arm excluded",
	"kind_not_comparable": "kinds of steps excluded",
	"loss":                "profiler lost events",
	"no_expert_times":     "no time per expert",
	"no_experts":          "no expert kernel recognized",
	"no_load":             "counts incomplete",
	"no_top_k":            "experts per token unknown",
	"no_wait":             "waiting unknown",
	"one_launch":          "one launch",
	"one_rank":            "only one rank",
	"one_server":          "another server measured",
	"one_session":         "several sessions",
	"one_window":          "one window of traffic",
	"only_one_difference": "arms differ otherwise",
	"order_effect":        "running second matters",
	"other_arms":          "steps of other arms excluded",
	"other_kernels":       "arms ran different kernels",
	"other_kind":          "other kinds of steps excluded",
	"other_load":          "other processes ran",
	"other_processes":     "other processes on the GPUs",
	"outliers":            "outlying launches",
	"outlying_segments":   "segments far from their median",
	"partial_steps":       "incomplete steps excluded",
	"same_files":          "files differ",
	"sign_of_gain":        "balance slows some load",
	"skew":                "ranks' clocks differ",
	"start_up":            "warm-up excluded",
	"treatment_proved":    "balance not proved",
	"unequal_tokens":      "steps without a match excluded",
	"unknown_kernels":     "kernels of unknown phase",
	"window":              "counts are sums over passes",
}
