package counts

import (
	"cmp"
	"encoding/json"
	"errors"
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
func configuration(text []byte) (any, error) {
	var file struct {
		Ranks  int              `yaml:"ep_size" json:"ep_size"`
		Slots  int              `yaml:"num_slots" json:"num_slots"`
		Layers map[string][]int `yaml:"initial_global_assignments" json:"initial_global_assignments"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, errors.New("want initial_global_assignments as lists of experts by layer, such as 0: [0, 1, 2, 0]")
	}
	text, _ = json.Marshal(file) // numbers and lists
	return newDecoder(text).decode()
}

// hold takes the slots that one field of an object names.
func (c *collector) hold(of *context, key string, v any) error {
	switch plain(key) {
	case "recordtype":
		c.moeOnly = c.moeOnly || word(v) == vllmMapping
	case "modelmaps": // of a fork of vLLM
		if c.moeOnly = true; len(items(v)) != 1 {
			return fmt.Errorf("want one model, have %d", len(items(v)))
		}
	case "devicelist": // of vllm-ascend, in any order
		c.moeOnly = true
		devices := items(v)
		experts, all := map[int64]any{}, tensor.Array{Shape: []int64{1, int64(len(devices)), 0}}
		for _, device := range devices {
			at, _ := number(part(device.Value, "device_id"))
			experts[at] = part(device.Value, "device_expert")
		}
		for rank := range int64(len(devices)) {
			own, err := arrayOf(experts[rank])
			if n := int64(len(own.Values)); err != nil || rank > 0 && n != all.Shape[2] {
				return fmt.Errorf("want each of %d devices once, with equally many experts as device_expert", len(devices))
			}
			all.Values, all.Shape[2] = append(all.Values, own.Values...), int64(len(own.Values))
		}
		return c.holdArray(of, all)
	case "initialglobalassignments":
		for _, layer := range items(v) {
			n, err := strconv.ParseInt(layer.Name, 10, 32)
			a, failed := arrayOf(layer.Value)
			if size := of.numbers[isCount]; cmp.Or(err, failed) != nil || size != int64(len(a.Values)) {
				return fmt.Errorf("layer %s: want a list of %d slots (num_slots), have %d", layer.Name, size, len(a.Values))
			}
			inner := *of
			inner.numbers[isLayer] = n
			if err := c.holdArray(&inner, a); err != nil {
				return err
			}
		}
	case "physicaltologicalmap", "lastphysicaltologicalmap", "p2lmap":
		a, err := arrayOf(v)
		if err != nil {
			return err
		}
		return c.holdArray(of, a)
	}
	return nil
}

// holdArray takes slots of all layers [0 1 2 0], or of the layer that the context names, slots by layer, or experts by
// layer and rank. The copies that are counted beside them stand there.
func (c *collector) holdArray(of *context, a tensor.Array) error {
	n := len(a.Shape)
	if n < 1 || n > 3 || len(a.Values) == 0 || a.Shape[0] > maxLayers {
		return fmt.Errorf("want slots, layers × slots, or layers × ranks × experts, have %v", a.Shape)
	}
	layer, width := allLayers, len(a.Values)
	if of.has(isLayer) {
		layer = int(of.numbers[isLayer])
	}
	if n > 1 {
		width /= int(a.Shape[0])
		layer = max(0, layer)
	}
	if n == 3 {
		of.numbers[isRanks] = a.Shape[1]
	}
	if err := c.onRanks(of.numbers[isRanks]); err != nil {
		return err
	}
	of.copies = Slots{}
	for row := range slices.Chunk(a.Values, width) {
		experts, err := expertsOf(row)
		if err != nil {
			return err
		}
		if before := c.placed[layer]; c.source > 0 && before != nil && !slices.Equal(before, experts) {
			return errors.New("the map of copies differs from the map of other ranks")
		}
		c.placed[layer], of.copies[layer] = experts, experts
		layer++
	}
	return nil
}

// ReadPlacement reads where the experts are: a file of an engine, a fork's maps by model, or bare lists: of slots for
// all layers, of slots by layer, or of experts by layer and rank. ranks is the EP size for files that
// list slots only; 0 where the file says it. Errors are of type *input.Error.
func ReadPlacement(path string, ranks int) (*Placement, error) {
	d, err := openDocument(path)
	var p *Placement
	if err == nil {
		p, err = d.placement(ranks)
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	return p, nil
}

// placement reads the document as a placement.
func (d *document) placement(ranks int) (p *Placement, err error) {
	c, of := newCollector(d), nothing()
	if d.isText() && assignments.Match(d.text) {
		d.binary = "YAML file"
		d.root, err = configuration(d.text)
	}
	if stored, ok := d.root.(tensor.Stored); ok {
		var a tensor.Array
		if a, err = stored(); err == nil {
			c.moeOnly = true
			err = c.holdArray(&of, a)
		}
	} else if err = cmp.Or(err, d.broken); err == nil && d.root != nil {
		err = c.objects(d)
	}
	switch {
	case err != nil:
		return nil, err
	case d.text == nil:
		return nil, errors.New("want a file, have a folder; name a file in it")
	case len(c.placed) == 0:
		return nil, errors.New("it names no layer: want an EPLB configuration (num_slots, initial_global_assignments), an " +
			"expert map (layer_list), vLLM's eplb_initial_mapping or SGLang's physical_to_logical_map")
	case c.Ranks != 0 && ranks != 0 && c.Ranks != ranks:
		return nil, fmt.Errorf("%s asked for, but the file is of %d", quantity.Count(ranks, "rank"), c.Ranks)
	case max(c.Ranks, ranks) < 1:
		return nil, errors.New("slots over an unknown number of ranks: give the EP size, by --ep")
	}
	experts := 0
	for _, slots := range c.placed {
		experts = max(experts, int(slices.Max(slots))+1)
	}
	if p, err = placed(d.path, experts, max(c.Ranks, ranks), c.placed); err == nil {
		p.moeOnly = c.moeOnly
	}
	return p, err
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
