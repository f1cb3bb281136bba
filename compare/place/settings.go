package place

import (
	"fmt"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
)

// Setting is how an engine rebalances as the best way that it knows does. Engines place by EPLB
// of what they counted last.
type Setting struct {
	Plan
	Engine      string        `json:"engine"`
	Way         string        `json:"way"`
	MaxOverMean router.Number `json:"max_over_mean"`
	Change      router.Number `json:"load_change"`
	Text        string        `json:"setting"`
}

// set finds the settings of three engines: vLLM and TensorRT-LLM count steps alone, SGLang also
// asks how balanced they were. PASSES stands for a number of steps that is not recorded.
func (r *Rebalance) set(s simulation, size placement.Size) {
	passes, layers := s.passes(), len(s.windows[0].shares)
	copies := size.Slots - s.experts
	counted := func(w Way) bool { return !w.Below.Defined() }
	for _, e := range []struct {
		engine string
		knows  func(Way) bool
		text   func(Way) string
	}{
		{"vLLM", counted, func(w Way) string {
			return fmt.Sprintf(`vllm serve MODEL --enable-expert-parallel --enable-eplb --eplb-config `+
				`'{"step_interval": %s, "window_size": %s, "num_redundant_experts": %d}'`,
				times(w.Every, passes), times(1, passes), copies)
		}},
		{"SGLang", func(Way) bool { return true }, func(w Way) string {
			text := fmt.Sprintf("python -m sglang.launch_server --model-path MODEL --enable-eplb "+
				"--eplb-rebalance-num-iterations %s", times(max(1, w.Every), passes))
			if w.Below.Defined() {
				text += fmt.Sprintf(" --eplb-min-rebalancing-utilization-threshold %g", w.Below)
			}
			return fmt.Sprintf("%s --ep-num-redundant-experts %d", text, copies)
		}},
		{"TensorRT-LLM", counted, func(w Way) string {
			updates := 1 // the least: each layer once in as many steps as there are layers
			if passes > 0 {
				updates = max(1, layers/(passes*w.Every))
			}
			return fmt.Sprintf("moe_config: {load_balancer: {num_slots: %d, layer_updates_per_iter: %d}}", size.Slots,
				updates)
		}},
	} {
		w := r.Ways[least(r.Ways, func(w Way) bool { return (w.Learns == PlanEPLB || w.Name == Never) && e.knows(w) })]
		if float64(-w.Change) < keepsEnough {
			w = r.Ways[0]
		}
		text := still[e.engine]
		if w.Name != Never && w.Name != Once {
			text = e.text(w)
		}
		r.Settings = append(r.Settings, Setting{Plan: w.Plan, Engine: e.engine, Way: w.Name, MaxOverMean: w.MaxOverMean,
			Change: w.Change, Text: text})
	}
}

// keepsEnough is the least change of load that a setting is named for.
const keepsEnough = 0.01

// still are the settings of placements that stay, whose files place writes.
var still = map[string]string{
	"vLLM":         "no --enable-eplb, or the file of --write-vllm",
	"SGLang":       "--init-expert-location and the file of --write-sglang",
	"TensorRT-LLM": "layer_updates_per_iter: 0 and the file of --write-trtllm",
}

// passes is how many forward passes a window has, 0 where that is not recorded.
func (s *simulation) passes() int {
	n := 0
	for _, w := range s.windows {
		if w.record.Window {
			return 0
		}
		n += w.Iterations
	}
	return n / len(s.windows)
}

// times is a number of passes in so many windows.
func times(windows, passes int) string {
	if passes > 0 {
		return fmt.Sprint(windows * passes)
	}
	return fmt.Sprintf("%d*PASSES", windows)
}
