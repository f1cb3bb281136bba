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
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// The engines that take placements, each in a file of its own form.
const (
	TensorRT = "trtllm"
	SGLang   = "sglang"
	VLLM     = "vllm"
	Ascend   = "ascend"
)

// ErrRanks is wrapped where a placement lists slots and nothing tells over how many ranks.
var ErrRanks = errors.New("give the EP size, by --ep")

// allLayers is the number of a layer that stands for every one.
const allLayers = -1

// held is what a file says of a placement: the experts that each rank holds, by layer. Where ranks
// is 0 they are one list of slots, which ranks hold in equal consecutive runs.
type held struct {
	ranks   int
	layers  map[int][][]int32
	moeOnly bool // layers are numbered without dense ones
}

// assignments are the logical expert of every physical slot, layer by layer: of the layers of the model in TensorRT-LLM's
// EPLB configuration, which is YAML, or of MoE layers in vLLM's initial mapping (pull request 41141), which is JSON.
type assignments struct {
	Type      string          `json:"record_type,omitempty" yaml:"-"`
	Version   int             `json:"version,omitempty" yaml:"-"`
	Ranks     int             `json:"ep_size,omitempty" yaml:"ep_size,omitempty"`
	Redundant int             `json:"num_redundant_experts" yaml:"-"`
	Slots     int             `json:"num_slots" yaml:"num_slots"`
	Layers    map[int][]int32 `json:"initial_global_assignments" yaml:"initial_global_assignments"`
}

const vllmMapping = "eplb_initial_mapping"

// assignmentsKey is in every file of assignments.
var assignmentsKey = regexp.MustCompile(`(?m)(?:^\s*|"|')initial_global_assignments["']?\s*:`)

func (f assignments) held() (held, error) {
	h := held{f.Ranks, map[int][][]int32{}, f.Type == vllmMapping}
	for layer, slots := range f.Layers {
		if len(slots) != f.Slots {
			return h, fmt.Errorf("layer %d: want %d slots (num_slots), have %d", layer, f.Slots, len(slots))
		}
		h.layers[layer] = [][]int32{slots}
	}
	return h, nil
}

// expertMap is vllm-ascend's, which numbers MoE layers alone.
type expertMap struct {
	Layers int              `json:"moe_layer_count"`
	List   []expertMapLayer `json:"layer_list"`
}

type expertMapLayer struct {
	Layer   int               `json:"layer_id"`
	Devices int               `json:"device_count"`
	List    []expertMapDevice `json:"device_list"`
}

type expertMapDevice struct {
	Device  int     `json:"device_id"`
	Experts []int32 `json:"device_expert"`
}

func (f expertMap) held() (h held, err error) {
	if len(f.List) == 0 || len(f.List) != f.Layers {
		return h, fmt.Errorf("want %s (moe_layer_count), have %d", quantity.Count(f.Layers, "layer"), len(f.List))
	}
	h = held{f.List[0].Devices, map[int][][]int32{}, true}
	for _, layer := range f.List {
		devices := map[int][]int32{}
		for _, device := range layer.List {
			devices[device.Device] = device.Experts
		}
		if len(devices) != h.ranks || len(layer.List) != h.ranks || layer.Devices != h.ranks || h.layers[layer.Layer] != nil {
			return h, fmt.Errorf("layer %d: want each of %d devices once, have %d of %d", layer.Layer, h.ranks, len(devices),
				len(layer.List))
		}
		for rank := range h.ranks {
			h.layers[layer.Layer] = append(h.layers[layer.Layer], devices[rank])
		}
	}
	return h, nil
}

// mapped is the map of slots by layer on so many ranks.
func mapped(rows [][]int32, ranks int) expertMap {
	f := expertMap{Layers: len(rows)}
	for i, row := range rows {
		layer := expertMapLayer{Layer: i, Devices: ranks}
		for experts := range slices.Chunk(row, len(row)/ranks) {
			layer.List = append(layer.List, expertMapDevice{len(layer.List), experts})
		}
		f.List = append(f.List, layer)
	}
	return f
}

// placed is what reads a document as a placement, nil for a document that is none. A bare list may
// be of counts.
func (d *document) placed() func(*document) (held, error) {
	switch {
	case d.has("layer_list"):
		return func(d *document) (held, error) {
			var file expertMap
			if err := json.Unmarshal(d.first.json, &file); err != nil {
				return held{}, err
			}
			return file.held()
		}
	case d.has("physical_to_logical_map"), d.has("model_maps"):
		return (*document).slotMap
	case d.isText() && assignmentsKey.Match(d.text):
		return func(d *document) (held, error) {
			var file assignments
			if err := yaml.Unmarshal(d.text, &file); err != nil {
				return held{}, fmt.Errorf("not the YAML of an EPLB configuration: %w", err)
			}
			return file.held()
		}
	case d.first.json != nil && assignmentsKey.Match(d.text):
		return func(d *document) (held, error) { // which is one of several records where it is JSONL
			var file assignments
			for v, err := range d.values() {
				if err != nil || json.Unmarshal(v.json, &file) == nil && file.Layers != nil {
					break
				}
			}
			return file.held()
		}
	}
	return nil
}

// slotMap reads the experts of the physical slots by layer, which SGLang takes, or which a fork
// of vLLM writes by model, for MoE layers alone.
func (d *document) slotMap() (h held, err error) {
	file, forked := d.keys["physical_to_logical_map"], false
	for name, model := range d.keys["model_maps"].parts() {
		if forked {
			return h, fmt.Errorf("maps of %s and of other models: want a file of one model", name)
		}
		forked = true
		for key, part := range model.parts() {
			if key == "physical_to_logical_map" {
				file = part
			}
		}
	}
	h, err = listed(file)
	h.moeOnly = forked
	return h, err
}

// listed reads slots of all layers [0 1 2 0], slots by layer, or experts by layer and rank.
func listed(v value) (h held, err error) {
	a, err := v.array()
	if err != nil {
		return h, err
	}
	n := len(a.Shape)
	if n < 1 || n > 3 || len(a.Values) == 0 {
		return h, fmt.Errorf("want slots, layers × slots, or layers × ranks × experts, have %v", a.Shape)
	}
	h = held{layers: map[int][][]int32{}, moeOnly: true}
	if n == 3 {
		h.ranks = int(a.Shape[1])
	}
	i := 0
	for row := range a.Rows() {
		experts, err := expertsOf(row)
		if err != nil {
			return h, err
		}
		layer := allLayers
		if n > 1 {
			layer = i / max(1, h.ranks)
		}
		h.layers[layer] = append(h.layers[layer], experts)
		i++
	}
	return h, nil
}

// ReadPlacement reads where the experts are: a file of an engine, a fork's maps by model, or bare lists: of slots for
// all layers, of slots by layer, or of experts by layer and rank. ranks is the EP size for files that
// list slots only; 0 where the file says it. Errors are of type *input.Error.
func ReadPlacement(path string, ranks int) (*Placement, error) {
	text, err := input.ReadFile(path, maxFile)
	if err != nil {
		return nil, unreadable(path, err)
	}
	p, err := parsePlacement(path, text, ranks)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return p, nil
}

// parsePlacement is ReadPlacement of a file's content.
func parsePlacement(path string, text []byte, ranks int) (*Placement, error) {
	d, err := newDocument(path, text)
	if err = cmp.Or(err, d.broken); err != nil {
		return nil, err
	}
	read := d.placed()
	if read == nil && d.first.isList() {
		read = func(d *document) (held, error) { return listed(d.first) }
	}
	if read == nil {
		return nil, errors.New(
			"unknown placement format: want an EPLB configuration (num_slots, initial_global_assignments), an expert map " +
				"(layer_list), vLLM's eplb_initial_mapping or SGLang's physical_to_logical_map")
	}
	h, err := read(d)
	if err != nil {
		return nil, err
	}
	return h.placement(path, ranks)
}

// placement is what a file says, on so many ranks where it does not say how many.
func (h held) placement(path string, ranks int) (p *Placement, err error) {
	switch {
	case len(h.layers) == 0:
		return nil, errors.New("it names no layer (initial_global_assignments, physical_to_logical_map or layer_list)")
	case h.ranks != 0 && ranks != 0 && h.ranks != ranks:
		return nil, fmt.Errorf("%s asked for, but the file is of %d", quantity.Count(ranks, "rank"), h.ranks)
	case h.ranks == 0 && ranks == 0:
		return nil, fmt.Errorf("slots over an unknown number of ranks: %w", ErrRanks)
	}
	p = &Placement{Source: path, Ranks: max(h.ranks, ranks), moeOnly: h.moeOnly}
	for _, ranks := range h.layers {
		for _, experts := range ranks {
			p.Experts = max(p.Experts, int(slices.Max(append(experts, -1)))+1)
		}
	}
	if err := bounded(p.Experts, p.Ranks); err != nil {
		return nil, err
	}
	for _, layer := range slices.Sorted(maps.Keys(h.layers)) {
		if err := p.place(layer, h.layers[layer]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Slots are the logical experts of the physical slots of each layer, equally many in
// every one, which fall to the ranks in equal consecutive runs.
type Slots map[int][]int32

// Write writes the slots as an engine takes them: TensorRT-LLM as moe_config.load_balancer of a static placement, by the
// numbers of the model's layers; SGLang as --init-expert-location, a row for every layer of the model from 0 on;
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
	var rows [][]int32
	for _, layer := range moe {
		row := s[layer]
		if row == nil {
			row = trivial(slots, experts)
		}
		rows = append(rows, row)
	}
	var file any
	switch engine {
	case TensorRT:
		text := fmt.Sprintf("num_slots: %d\ninitial_global_assignments:\n", slots)
		for _, layer := range own {
			text += fmt.Sprintf("  %d: %s\n", layer, strings.ReplaceAll(fmt.Sprint(s[layer]), " ", ", "))
		}
		_, err := io.WriteString(w, text+"layer_updates_per_iter: 0\n")
		return err
	case SGLang:
		file = map[string]any{"physical_to_logical_map": rows}
	case VLLM:
		byNumber := map[int][]int32{}
		for i, row := range rows {
			byNumber[i] = row
		}
		file = assignments{Type: vllmMapping, Version: 1, Redundant: slots - experts, Slots: slots, Layers: byNumber}
	case Ascend:
		file = mapped(rows, ranks)
	}
	return json.NewEncoder(w).Encode(file)
}

func trivial(slots, experts int) []int32 {
	row := make([]int32, slots)
	for i := range row {
		row[i] = int32(i % experts)
	}
	return row
}
