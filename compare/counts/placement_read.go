package counts

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// ErrRanks is wrapped where a placement lists slots and nothing tells over how many ranks.
var ErrRanks = errors.New("give the EP size, by --ep")

// ReadPlacement reads where the experts are: a TensorRT-LLM EPLB configuration, vllm-ascend's
// expert map, vLLM's initial mapping or its maps by model, the physical to logical map that SGLang
// takes as --init-expert-location, or bare lists: of slots for all layers, of slots by layer, or
// of experts by layer and rank. ranks is the EP size for files that list slots only; 0 where the
// file says it. Errors are of type *input.Error.
func ReadPlacement(path string, ranks int) (*Placement, error) {
	text, err := input.ReadFile(path, maxFile)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return parsePlacement(path, text, ranks)
}

// parsePlacement is ReadPlacement of a file's content.
func parsePlacement(path string, text []byte, ranks int) (*Placement, error) {
	d, err := newDocument(path, text)
	if err == nil {
		err = d.broken
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	read := d.placed()
	if read == nil && d.isArray() {
		read = func(d *document) (found, error) { return listsOf(d.first[0]) }
	}
	if read == nil {
		return nil, unreadable(path, errors.New(
			"unknown placement format: want an EPLB configuration (num_slots, initial_global_assignments), an expert map "+
				"(layer_list), vLLM's eplb_initial_mapping or SGLang's physical_to_logical_map"))
	}
	f, err := read(d)
	if err == nil {
		var p *Placement
		if p, err = f.placement(path, ranks); err == nil {
			return p, nil
		}
	}
	return nil, unreadable(path, err)
}

// allLayers is the number of a layer that stands for every one.
const allLayers = -1

// found is what a file says of a placement: the experts that each rank holds, by layer. Where ranks
// is 0 they are one list of slots, which ranks hold in equal consecutive runs.
type found struct {
	ranks   int
	held    map[int][][]int32
	moeOnly bool // layers are numbered without dense ones
}

// placed is what reads a document as a placement, nil for a document that is none. A bare list may
// be of counts.
func (d *document) placed() func(*document) (found, error) {
	switch {
	case d.has("layer_list"):
		return (*document).expertMap
	case d.has("physical_to_logical_map"), d.has("model_maps"):
		return (*document).physicalMap
	case (d.isText() || d.first != nil) && assignmentsKey.Match(d.text):
		return (*document).assignments
	}
	return nil
}

// assignmentsKey is in every TensorRT-LLM EPLB configuration, and in vLLM's initial mapping.
var assignmentsKey = regexp.MustCompile(`(?m)(?:^\s*|"|')initial_global_assignments["']?\s*:`)

// assignments reads the logical expert of every physical slot, layer by layer, of TensorRT-LLM's
// EPLB configuration and vLLM's initial mapping, which is one of several records where it is JSONL.
func (d *document) assignments() (found, error) {
	var file struct {
		Type   string          `json:"record_type" yaml:"-"` // of vLLM's
		Ranks  int             `json:"ep_size" yaml:"ep_size"`
		Slots  int             `json:"num_slots" yaml:"num_slots"`
		Layers map[int][]int32 `json:"initial_global_assignments" yaml:"initial_global_assignments"`
	}
	if d.isText() {
		if err := yaml.Unmarshal(d.text, &file); err != nil {
			return found{}, fmt.Errorf("not the YAML of an EPLB configuration: %w", err)
		}
	}
	for v, err := range d.values() {
		if err != nil || json.Unmarshal(v.json, &file) == nil && file.Layers != nil {
			break
		}
	}
	f := found{ranks: file.Ranks, held: map[int][][]int32{}, moeOnly: file.Type == "eplb_initial_mapping"}
	for layer, slots := range file.Layers {
		if len(slots) != file.Slots {
			return f, fmt.Errorf("layer %d: want %d slots (num_slots), have %d", layer, file.Slots, len(slots))
		}
		f.held[layer] = [][]int32{slots}
	}
	return f, nil
}

// physicalMap reads the experts of the physical slots by layer, which SGLang takes, or which a fork
// of vLLM writes by model, for MoE layers alone.
func (d *document) physicalMap() (found, error) {
	keys, models := d.keys, d.keys.get("model_maps").keys()
	if len(models) > 1 {
		return found{}, fmt.Errorf("maps of %s, %s, …: want a file of one model", models[0].key, models[1].key)
	}
	if len(models) > 0 {
		keys = models[0].keys()
	}
	f, err := listsOf(keys.get("physical_to_logical_map"))
	f.moeOnly = len(models) > 0
	return f, err
}

// listsOf reads slots of all layers [0 1 2 0], slots by layer, or experts by layer and rank.
func listsOf(v value) (f found, err error) {
	a, err := v.array()
	if err != nil {
		return f, err
	}
	experts, err := expertsOf(a.Values)
	n := len(a.Shape)
	switch {
	case err != nil:
		return f, err
	case n > 3 || len(experts) == 0:
		return f, fmt.Errorf("want slots, layers × slots, or layers × ranks × experts, have %v", a.Shape)
	}
	f = found{held: map[int][][]int32{}, moeOnly: true}
	if n == 3 {
		f.ranks = int(a.Shape[1])
	}
	for i, row := range slices.Collect(slices.Chunk(experts, int(a.Shape[n-1]))) {
		layer := allLayers
		if n > 1 {
			layer = i / max(1, f.ranks)
		}
		f.held[layer] = append(f.held[layer], row)
	}
	return f, nil
}

// expertMap reads the expert map of vllm-ascend, which numbers MoE layers alone.
func (d *document) expertMap() (f found, err error) {
	var file struct {
		Layers int `json:"moe_layer_count"`
		List   []struct {
			Layer   int `json:"layer_id"`
			Devices int `json:"device_count"`
			List    []struct {
				Device  int     `json:"device_id"`
				Experts []int32 `json:"device_expert"`
			} `json:"device_list"`
		} `json:"layer_list"`
	}
	if err := json.Unmarshal(d.first[0].json, &file); err != nil {
		return f, err
	}
	if len(file.List) == 0 || len(file.List) != file.Layers {
		return f, fmt.Errorf("want %s (moe_layer_count), have %d", quantity.Count(file.Layers, "layer"),
			len(file.List))
	}
	f = found{ranks: file.List[0].Devices, held: map[int][][]int32{}, moeOnly: true}
	for _, layer := range file.List {
		devices := map[int][]int32{}
		for _, device := range layer.List {
			devices[device.Device] = device.Experts
		}
		if len(devices) != f.ranks || len(layer.List) != f.ranks || layer.Devices != f.ranks || f.held[layer.Layer] != nil {
			return f, fmt.Errorf("layer %d: want each of %d devices once, have %d of %d", layer.Layer, f.ranks, len(devices),
				len(layer.List))
		}
		for rank := range f.ranks {
			f.held[layer.Layer] = append(f.held[layer.Layer], devices[rank])
		}
	}
	return f, nil
}

// placement is what a file says, on so many ranks where it does not say how many.
func (f found) placement(path string, ranks int) (p *Placement, err error) {
	switch {
	case len(f.held) == 0:
		return nil, errors.New("it names no layer (initial_global_assignments, physical_to_logical_map or layer_list)")
	case f.ranks != 0 && ranks != 0 && f.ranks != ranks:
		return nil, fmt.Errorf("%s asked for, but the file is of %d", quantity.Count(ranks, "rank"), f.ranks)
	case f.ranks == 0 && ranks == 0:
		return nil, fmt.Errorf("slots over an unknown number of ranks: %w", ErrRanks)
	}
	p = &Placement{Source: path, Ranks: max(f.ranks, ranks), moeOnly: f.moeOnly}
	for _, held := range f.held {
		for _, experts := range held {
			p.Experts = max(p.Experts, int(slices.Max(append(experts, -1)))+1)
		}
	}
	if err := bounded(p.Experts, p.Ranks); err != nil {
		return nil, err
	}
	for _, layer := range slices.Sorted(maps.Keys(f.held)) {
		if err := p.place(layer, f.held[layer]); err != nil {
			return nil, err
		}
	}
	return p, nil
}
