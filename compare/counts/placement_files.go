package counts

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router/quantity"
)

// The engines that take placements, each in a file of its own form.
const (
	TensorRT = "trtllm"
	SGLang   = "sglang"
	VLLM     = "vllm"
	Ascend   = "ascend"
)

const (
	vllmMapping    = "eplb_initial_mapping" // of pull request 41141, by MoE layer
	assignmentsKey = "initial_global_assignments"
)

// assignments tell TensorRT-LLM's EPLB configuration, which is YAML.
var assignments = regexp.MustCompile(`(?m)^\s*` + assignmentsKey + `\s*:`)

// configuration is the tree of TensorRT-LLM's EPLB configuration.
func configuration(text []byte) any {
	var file struct {
		Ranks  int              `yaml:"ep_size" json:"ep_size"`
		Slots  int              `yaml:"num_slots" json:"num_slots"`
		Layers map[string][]int `yaml:"initial_global_assignments" json:"initial_global_assignments"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		fail("want initial_global_assignments as lists of experts by layer, such as 0: [0, 1, 2, 0]")
	}
	return celled(string(must(json.Marshal(file))))
}

// hold takes the slots that one field of an object names.
func (c *collector) hold(of *context, key string, v any) {
	switch key {
	case "recordtype":
		c.moeOnly = c.moeOnly || word(v) == vllmMapping
	case "modelmaps": // of a fork of vLLM
		if models, _ := v.(map[string]any); len(models) != 1 {
			fail("want one model, have %d", len(models))
		}
		c.moeOnly = true
	case "devicelist": // of vllm-ascend, in any order
		c.moeOnly = true
		devices, held := listOf(v), map[int64][]int64{}
		for _, device := range devices {
			held[must(number(part(device, "device_id")))] = arrayOf(part(device, "device_expert")).Values
		}
		all := tensor.Array{Shape: []int64{1, int64(len(held)), int64(len(held[0]))}}
		for rank := range int64(len(held)) {
			if all.Values = append(all.Values, held[rank]...); len(held) < len(devices) || len(held[rank]) == 0 ||
				int64(len(all.Values)) != (rank+1)*all.Shape[2] {
				fail("want each of %d devices once, with equally many experts as device_expert", len(devices))
			}
		}
		c.place(of, all)
	case "initialglobalassignments":
		each(v, func(layer string, v any) {
			a, inner := arrayOf(v), *of
			if size := of.numbers[isCount]; size != int64(len(a.Values)) {
				fail("want a list of %d slots (num_slots), have %d", size, len(a.Values))
			}
			inner.numbers[isLayer] = must(strconv.ParseInt(layer, 10, 32))
			c.place(&inner, a)
		})
	case "physicaltologicalmap", "lastphysicaltologicalmap", "p2lmap":
		c.place(of, arrayOf(v))
	}
}

// place takes slots of all layers [0 1 2 0], or of the layer that the context names, slots by layer, or experts by
// layer and rank. The copies that are counted beside them stand there.
func (c *collector) place(of *context, a tensor.Array) {
	n, layer, width := len(a.Shape), max(allLayers, int(of.numbers[isLayer])), len(a.Values)
	if n < 1 || n > 3 || width == 0 || a.Shape[0] > maxLayers {
		fail("want slots, layers × slots, or layers × ranks × experts, have %v", a.Shape)
	}
	if n > 1 {
		layer, width = max(0, layer), width/int(a.Shape[0])
	}
	if n == 3 {
		of.numbers[isRanks] = a.Shape[1]
	}
	c.onRanks(of.numbers[isRanks])
	of.copies = Slots{}
	for row := range slices.Chunk(a.Values, width) {
		experts := make([]int32, width)
		for i, e := range row {
			if e < noExpert || e >= maxExperts {
				fail("the map names expert %d", e)
			}
			experts[i] = int32(e)
		}
		if before := c.placed[layer]; c.source > 0 && before != nil && !slices.Equal(before, experts) {
			fail("the map of copies differs from the map of other ranks")
		}
		c.placed[layer], of.copies[layer] = experts, experts
		layer++
	}
}

// ReadPlacement reads where the experts are: a file of an engine, a fork's maps by model, or bare lists: of slots for
// all layers, of slots by layer, or of experts by layer and rank. ranks is the EP size for files that
// list slots only; 0 where the file says it. Errors are of type *input.Error.
func ReadPlacement(path string, ranks int) (p *Placement, err error) {
	err = reading(path, func() { p = openDocument(path).placement(ranks) })
	return p, err
}

// placement reads the document as a placement.
func (d *document) placement(ranks int) *Placement {
	c := newCollector(d)
	c.placing = true
	c.read(d)
	switch {
	case len(c.placed) == 0 && d.broken != nil:
		fail("%w", d.broken)
	case len(c.placed) == 0:
		fail("it names no layer: want an EPLB configuration (num_slots, initial_global_assignments), an " +
			"expert map (layer_list), vLLM's eplb_initial_mapping or SGLang's physical_to_logical_map")
	case c.Ranks != 0 && ranks != 0 && c.Ranks != ranks:
		fail("%s asked for, but the file is of %d", quantity.Count(ranks, "rank"), c.Ranks)
	case max(c.Ranks, ranks) < 1:
		fail("slots over an unknown number of ranks: give the EP size, by --ep")
	}
	experts := 0
	for _, slots := range c.placed {
		experts = max(experts, int(slices.Max(slots))+1)
	}
	p := must(placed(d.path, experts, max(c.Ranks, ranks), c.placed))
	p.moeOnly = c.moeOnly
	return p
}

// Write writes the slots as an engine takes them: TensorRT-LLM as moe_config.load_balancer of a static placement, by
// the numbers of the model's layers; SGLang as --init-expert-location, a row for every layer of the model from 0 on;
// vLLM and vllm-ascend by MoE layer, which moe names. Layers without slots, which are dense, get the row that SGLang
// itself starts with: expert i mod experts in slot i.
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
			rows[i] = trivial(slots, experts)
		}
	}
	var file map[string]any
	switch engine {
	case TensorRT:
		text := fmt.Sprintf("num_slots: %d\n%s:\n", slots, assignmentsKey)
		for _, layer := range own {
			text += fmt.Sprintf("  %d: %s\n", layer, strings.ReplaceAll(fmt.Sprint(s[layer]), " ", ", "))
		}
		_, err := io.WriteString(w, text+"layer_updates_per_iter: 0\n")
		return err
	case SGLang:
		file = map[string]any{"physical_to_logical_map": rows}
	case VLLM:
		file = map[string]any{"record_type": vllmMapping, "version": 1, "num_redundant_experts": slots - experts,
			"num_slots": slots, assignmentsKey: maps.Collect(slices.All(rows))}
	case Ascend:
		var layers []any
		for i, row := range rows {
			var devices []any
			for held := range slices.Chunk(row, slots/ranks) {
				devices = append(devices, map[string]any{"device_id": len(devices), "device_expert": held})
			}
			layers = append(layers, map[string]any{"layer_id": i, "device_count": ranks, "device_list": devices})
		}
		file = map[string]any{"moe_layer_count": len(rows), "layer_list": layers}
	}
	return json.NewEncoder(w).Encode(file)
}

// trivial is expert i mod experts in slot i.
func trivial(slots, experts int) []int32 {
	row := make([]int32, slots)
	for i := range row {
		row[i] = int32(i % experts)
	}
	return row
}
