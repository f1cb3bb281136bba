package counts

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// eplbLine is in every TensorRT-LLM EPLB configuration.
var eplbLine = regexp.MustCompile(`(?m)^\s*"?initial_global_assignments"?\s*:`)

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
		read = (*document).bareLists
	}
	if read == nil {
		return nil, unreadable(path, errors.New(
			"unknown placement format: want an EPLB configuration (num_slots, initial_global_assignments), an expert map "+
				"(layer_list), vLLM's eplb_initial_mapping or SGLang's physical_to_logical_map"))
	}
	found, err := read(d)
	var p *Placement
	if err == nil {
		p, err = found.placement(path, ranks)
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	return p, nil
}

// found is what a file says of a placement.
type found struct {
	ranks   int               // 0 where it lists slots alone
	slots   int               // of each layer
	layers  map[int][]int32   // slots by layer, which ranks hold in equal consecutive runs
	held    map[int][][]int32 // or experts by layer and rank
	every   []int32           // or slots of all layers
	moeOnly bool              // layers are numbered without dense ones
}

// placed is what reads a document as a placement, nil for a document that is none. A bare list may
// be of counts.
func (d *document) placed() func(*document) (found, error) {
	switch {
	case d.has("layer_list"):
		return (*document).expertMap
	case d.has("physical_to_logical_map"), d.has("model_maps"):
		return (*document).physicalMap
	case bytes.Contains(d.text, []byte(`"initial_global_assignments"`)) && d.values != nil,
		d.isText() && eplbLine.Match(d.text):
		return (*document).assignments
	}
	return nil
}

// assignments reads the logical expert of every physical slot, layer by layer, of TensorRT-LLM's
// EPLB configuration and vLLM's initial mapping.
func (d *document) assignments() (found, error) {
	var file struct {
		Type   string          `json:"record_type" yaml:"-"` // of vLLM's
		Ranks  int             `json:"ep_size" yaml:"ep_size"`
		Slots  int             `json:"num_slots" yaml:"num_slots"`
		Layers map[int][]int32 `json:"initial_global_assignments" yaml:"initial_global_assignments"`
	}
	for _, v := range d.values { // in JSONL the mapping is one record of several
		if v.into(&file) == nil && file.Layers != nil {
			break
		}
	}
	if d.isText() {
		if err := yaml.Unmarshal(d.text, &file); err != nil {
			return found{}, fmt.Errorf("not the YAML of an EPLB configuration: %w", err)
		}
	}
	if len(file.Layers) == 0 {
		return found{}, errors.New("initial_global_assignments names no layer")
	}
	return found{ranks: file.Ranks, slots: file.Slots, layers: file.Layers,
		moeOnly: file.Type == "eplb_initial_mapping"}, nil
}

// physicalMap reads the experts of the physical slots by layer, which SGLang takes, or which a fork
// of vLLM writes by model, for MoE layers alone.
func (d *document) physicalMap() (found, error) {
	from := d.values[0]
	models := d.keys["model_maps"].keys()
	if names := slices.Sorted(maps.Keys(models)); len(names) > 1 {
		return found{}, fmt.Errorf("maps of %s: want a file of one model", strings.Join(names, ", "))
	} else if len(names) == 1 {
		from = models[names[0]]
	}
	var file struct {
		Layers [][]int32 `json:"physical_to_logical_map"`
	}
	if err := from.into(&file); err != nil {
		return found{}, err
	}
	f := found{layers: map[int][]int32{}, moeOnly: len(models) > 0}
	for layer, slots := range file.Layers {
		f.slots, f.layers[layer] = len(slots), slots
	}
	return f, nil
}

// bareLists reads slots of all layers [0 1 2 0], slots by layer, or experts by layer and rank.
func (d *document) bareLists() (f found, err error) {
	a, err := d.values[0].array()
	if err != nil {
		return f, err
	}
	experts, err := expertsOf(a.Values)
	if err != nil {
		return f, err
	}
	f.moeOnly = true
	switch len(a.Shape) {
	case 1:
		f.every = experts
	case 2:
		f.layers, f.slots = map[int][]int32{}, int(a.Shape[1])
		for layer := range int(a.Shape[0]) {
			f.layers[layer] = experts[layer*f.slots : (layer+1)*f.slots]
		}
	case 3:
		f.held, f.ranks = map[int][][]int32{}, int(a.Shape[1])
		for i, held := range slices.Collect(slices.Chunk(experts, max(1, int(a.Shape[2])))) {
			f.held[i/f.ranks] = append(f.held[i/f.ranks], held)
		}
	default:
		return f, fmt.Errorf("want slots, layers × slots, or layers × ranks × experts, have %v", a.Shape)
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
	if err := d.values[0].into(&file); err != nil {
		return f, err
	}
	if len(file.List) == 0 || len(file.List) != file.Layers {
		return f, fmt.Errorf("want %s (moe_layer_count), have %d", quantity.Count(file.Layers, "layer"),
			len(file.List))
	}
	f = found{ranks: file.List[0].Devices, held: map[int][][]int32{}, moeOnly: true}
	if err := bounded(0, f.ranks); err != nil {
		return f, err
	}
	for _, layer := range file.List {
		held := make([][]int32, f.ranks)
		if len(layer.List) != f.ranks || layer.Devices != f.ranks || f.held[layer.Layer] != nil {
			return f, fmt.Errorf("layer %d: want %d devices once, have %d", layer.Layer, f.ranks, len(layer.List))
		}
		for _, device := range layer.List {
			if device.Device < 0 || device.Device >= f.ranks || held[device.Device] != nil {
				return f, fmt.Errorf("layer %d: want each device from 0 to %d once, have %d", layer.Layer, f.ranks-1,
					device.Device)
			}
			held[device.Device] = append([]int32{}, device.Experts...)
		}
		f.held[layer.Layer] = held
	}
	return f, nil
}

// placement is what a file says, on so many ranks where it does not say how many.
func (f found) placement(path string, ranks int) (p *Placement, err error) {
	switch {
	case f.ranks != 0 && ranks != 0 && f.ranks != ranks:
		return nil, fmt.Errorf("%s asked for, but the file is of %d", quantity.Count(ranks, "rank"), f.ranks)
	case f.ranks == 0 && ranks == 0:
		return nil, fmt.Errorf("%d slots over an unknown number of ranks: %w", max(f.slots, len(f.every)), ErrRanks)
	}
	p = &Placement{Source: path, Ranks: max(f.ranks, ranks), moeOnly: f.moeOnly}
	p.Experts = mapped(f.every)
	for _, slots := range f.layers {
		p.Experts = max(p.Experts, mapped(slots))
	}
	for _, held := range f.held {
		p.Experts = max(p.Experts, mapped(slices.Concat(held...)))
	}
	if err := bounded(p.Experts, p.Ranks); err != nil {
		return nil, err
	}
	if f.every != nil {
		err = p.placeSlots(0, f.every)
		p.every, p.layers = p.layers[0], nil
		return p, err
	}
	for _, layer := range slices.Sorted(maps.Keys(f.layers)) {
		if n := len(f.layers[layer]); n != f.slots {
			return nil, fmt.Errorf("layer %d: want %d slots (num_slots), have %d", layer, f.slots, n)
		}
		if err := p.placeSlots(layer, f.layers[layer]); err != nil {
			return nil, err
		}
	}
	for _, layer := range slices.Sorted(maps.Keys(f.held)) {
		if err := p.placeHeld(layer, f.held[layer]); err != nil {
			return nil, err
		}
	}
	if p.layers == nil {
		return nil, errors.New("it names no layer")
	}
	return p, nil
}
