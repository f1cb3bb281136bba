package counts

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Slots are the logical experts of the physical slots of each layer, equally many in
// every one, which fall to the ranks in equal consecutive runs.
type Slots map[int][]int32

// WriteTensorRT writes the slots as the configuration that TensorRT-LLM takes as
// moe_config.load_balancer, for a static placement. Layers have the numbers of the model.
func (s Slots) WriteTensorRT(w io.Writer) error {
	layers, slots := s.size()
	var b strings.Builder
	fmt.Fprintf(&b, "num_slots: %d\ninitial_global_assignments:\n", slots)
	for _, layer := range layers {
		fmt.Fprintf(&b, "  %d: %s\n", layer, strings.ReplaceAll(fmt.Sprint(s[layer]), " ", ", "))
	}
	b.WriteString("layer_updates_per_iter: 0\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteSGLang writes the slots as SGLang takes them as --init-expert-location: one
// row for every layer of the model from 0 on. Layers without slots, which are dense,
// get the row that SGLang itself starts with: expert i mod experts in slot i.
func (s Slots) WriteSGLang(w io.Writer, experts int) error {
	layers, _ := s.size()
	var all []int
	for layer := range layers[len(layers)-1] + 1 {
		all = append(all, layer)
	}
	return json.NewEncoder(w).Encode(map[string]any{"physical_to_logical_map": s.rows(experts, all)})
}

// WriteVLLM writes the slots as the initial mapping of vLLM's offline EPLB (pull
// request 41141), by MoE layer.
func (s Slots) WriteVLLM(w io.Writer, experts int, moe []int) error {
	_, slots := s.size()
	layers := map[int][]int32{}
	for i, row := range s.rows(experts, moe) {
		layers[i] = row
	}
	return json.NewEncoder(w).Encode(map[string]any{
		"record_type": "eplb_initial_mapping", "version": 1, "num_redundant_experts": slots - experts,
		"num_slots": slots, "initial_global_assignments": layers,
	})
}

// WriteAscend writes the slots as the expert map of vllm-ascend, by MoE layer and rank.
func (s Slots) WriteAscend(w io.Writer, experts, ranks int, moe []int) error {
	_, slots := s.size()
	var layers []map[string]any
	for i, row := range s.rows(experts, moe) {
		var devices []map[string]any
		for rank, held := range slices.Collect(slices.Chunk(row, slots/ranks)) {
			devices = append(devices, map[string]any{"device_id": rank, "device_expert": held})
		}
		layers = append(layers, map[string]any{"layer_id": i, "device_count": ranks, "device_list": devices})
	}
	return json.NewEncoder(w).Encode(map[string]any{"moe_layer_count": len(layers), "layer_list": layers})
}

// rows are the slots of layers, which some engines number from 0 on: those given where they hold all
// that have slots, else those that have. A layer without slots gets the row of WriteSGLang.
func (s Slots) rows(experts int, layers []int) (rows [][]int32) {
	own, n := s.size()
	if slices.ContainsFunc(own, func(l int) bool { return !slices.Contains(layers, l) }) {
		layers = own
	}
	for _, layer := range layers {
		row := s[layer]
		if row == nil {
			row = trivial(n, experts)
		}
		rows = append(rows, row)
	}
	return rows
}

func trivial(slots, experts int) []int32 {
	row := make([]int32, slots)
	for i := range row {
		row[i] = int32(i % experts)
	}
	return row
}

// size is the layers in order, and the slots of each.
func (s Slots) size() (layers []int, slots int) {
	layers = slices.Sorted(maps.Keys(s))
	return layers, len(s[layers[0]])
}
