package placement

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// The engines that take placements, each in a file of its own form.
const (
	TensorRT = "trtllm"
	SGLang   = "sglang"
	VLLM     = "vllm"
	Ascend   = "ascend"

	VLLMMapping    = "eplb_initial_mapping" // of pull request 41141, by MoE layer
	AssignmentsKey = "initial_global_assignments"
)

// Write writes the slots as an engine takes them: TensorRT-LLM as moe_config.load_balancer of a static
// placement, by the numbers of the model's layers; SGLang as --init-expert-location, a row for every layer of the model
// from 0 on; vLLM and vllm-ascend by MoE layer, which moe names. Layers without slots, which are dense, get the row
// that SGLang itself starts with: expert i mod experts in slot i.
func (s Slots) Write(w io.Writer, engine string, experts, ranks int, moe []int) error {
	own := slices.Sorted(maps.Keys(s))
	slots := len(s[own[0]])
	if engine == SGLang {
		moe = make([]int, own[len(own)-1]+1)
		for layer := range moe {
			moe[layer] = layer
		}
	} else if slices.ContainsFunc(own, func(l int) bool { return !slices.Contains(moe, l) }) {
		moe = own
	}
	rows := make([][]int32, len(moe))
	for i, layer := range moe {
		if rows[i] = s[layer]; rows[i] == nil {
			rows[i] = Trivial(slots, experts)
		}
	}
	var file map[string]any
	switch engine {
	case TensorRT:
		text := fmt.Sprintf("num_slots: %d\n%s:\n", slots, AssignmentsKey)
		for _, layer := range own {
			text += fmt.Sprintf("  %d: %s\n", layer, strings.ReplaceAll(fmt.Sprint(s[layer]), " ", ", "))
		}
		_, err := io.WriteString(w, text+"layer_updates_per_iter: 0\n")
		return err
	case SGLang:
		file = map[string]any{"physical_to_logical_map": rows}
	case VLLM:
		file = map[string]any{"record_type": VLLMMapping, "version": 1, "num_redundant_experts": slots - experts,
			"num_slots": slots, AssignmentsKey: maps.Collect(slices.All(rows))}
	case Ascend:
		var layers []any
		for i, row := range rows {
			var devices []any
			for held := range slices.Chunk(row, slots/ranks) {
				if own := slices.Compact(slices.Sorted(slices.Values(held))); len(own) < len(held) { // it would mix up weights
					return fmt.Errorf("vllm-ascend takes an expert once on a device, MoE layer %d has one twice on device %d: "+
						"use --plan robust with counts of other traffic, too, or fewer --redundant", i, len(devices))
				}
				devices = append(devices, map[string]any{"device_id": len(devices), "device_expert": held})
			}
			layers = append(layers, map[string]any{"layer_id": i, "device_count": ranks, "device_list": devices})
		}
		file = map[string]any{"moe_layer_count": len(rows), "layer_list": layers}
	}
	return json.NewEncoder(w).Encode(file)
}
