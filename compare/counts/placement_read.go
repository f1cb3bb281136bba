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

// eplbLine is in every TensorRT-LLM EPLB configuration.
var eplbLine = regexp.MustCompile(`(?m)^\s*"?initial_global_assignments"?\s*:`)

// ErrRanks is wrapped where a placement lists slots and nothing tells over how many ranks.
var ErrRanks = errors.New("give the EP size, by --ep")

// slotPlacement lists the logical expert of every physical slot, layer by layer,
// as TensorRT-LLM's EPLB configuration and vLLM's eplb_initial_mapping do. The
// slots of a rank are num_slots / ep_size consecutive ones.
type slotPlacement struct {
	Type        string          `json:"record_type" yaml:"-"` // of vLLM's
	Ranks       int             `json:"ep_size" yaml:"ep_size"`
	Slots       int             `json:"num_slots" yaml:"num_slots"`
	Assignments map[int][]int32 `json:"initial_global_assignments" yaml:"initial_global_assignments"`
}

// ReadPlacement reads where the experts are: a TensorRT-LLM EPLB configuration,
// a vllm-ascend or MindIE expert map, vLLM's initial mapping, or the physical to
// logical map that SGLang takes as --init-expert-location. ranks is the
// EP size for the formats that list slots only; 0 where the file says it. Errors
// are of type *input.Error.
func ReadPlacement(path string, ranks int) (*Placement, error) {
	content, err := input.ReadFile(path, maxFile)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return parsePlacement(path, content, ranks)
}

// parsePlacement is ReadPlacement of a file's content.
func parsePlacement(path string, content []byte, ranks int) (*Placement, error) {
	s, err := newSource(path, content)
	if err != nil {
		return nil, unreadable(path, err)
	}
	p, err := s.placement(ranks)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return p, nil
}

func (s *source) placement(ranks int) (*Placement, error) {
	if s.broken != nil {
		return nil, s.broken
	}
	if s.keys["layer_list"] != nil {
		return readExpertMap(s, ranks)
	}
	if s.keys["physical_to_logical_map"] != nil {
		var file struct {
			Layers [][]int32 `json:"physical_to_logical_map"`
		}
		if err := s.object(&file); err != nil {
			return nil, err
		}
		slots := slotPlacement{Assignments: map[int][]int32{}}
		for layer, physical := range file.Layers {
			slots.Slots, slots.Assignments[layer] = len(physical), physical
		}
		return slots.placement(s.path, ranks)
	}
	for _, value := range s.values { // in JSONL the mapping is one record of several
		var slots slotPlacement
		if err := json.Unmarshal(value, &slots); err == nil && slots.Assignments != nil {
			return slots.placement(s.path, ranks)
		}
	}
	if s.values == nil && eplbLine.Match(s.content) {
		var slots slotPlacement
		if err := yaml.Unmarshal(s.content, &slots); err != nil {
			return nil, fmt.Errorf("not the YAML of an EPLB configuration: %w", err)
		}
		return slots.placement(s.path, ranks)
	}
	return nil, errors.New(
		"unknown placement format: want an EPLB configuration (num_slots, initial_global_assignments), an expert map " +
			"(layer_list), vLLM's eplb_initial_mapping or SGLang's physical_to_logical_map")
}

func (s slotPlacement) placement(path string, ranks int) (*Placement, error) {
	switch {
	case ranks == 0:
		ranks = s.Ranks
	case s.Ranks != 0 && s.Ranks != ranks:
		return nil, fmt.Errorf("%s asked for, but ep_size is %d", quantity.Count(ranks, "rank"), s.Ranks)
	}
	if ranks == 0 {
		return nil, fmt.Errorf("%d slots over an unknown number of ranks: %w", s.Slots, ErrRanks)
	}
	p := &Placement{Source: path, Ranks: ranks, moeOnly: s.Type == "eplb_initial_mapping"}
	for _, slots := range s.Assignments {
		p.Experts = max(p.Experts, mapped(slots))
	}
	if err := bounded(p.Experts, p.Ranks); err != nil {
		return nil, err
	}
	for _, layer := range slices.Sorted(maps.Keys(s.Assignments)) {
		slots := s.Assignments[layer]
		if len(slots) != s.Slots {
			return nil, fmt.Errorf("layer %d: want %d slots (num_slots), have %d", layer, s.Slots, len(slots))
		}
		if err := p.placeSlots(layer, slots); err != nil {
			return nil, err
		}
	}
	if p.layers == nil {
		return nil, fmt.Errorf("initial_global_assignments names no layer")
	}
	return p, nil
}

// readExpertMap reads the expert map of vllm-ascend and MindIE, which number MoE layers alone.
func readExpertMap(s *source, ranks int) (*Placement, error) {
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
	if err := s.object(&file); err != nil {
		return nil, err
	}
	if len(file.List) == 0 || len(file.List) != file.Layers {
		return nil, fmt.Errorf("want %s (moe_layer_count), have %d", quantity.Count(file.Layers, "layer"),
			len(file.List))
	}
	p := &Placement{Source: s.path, Ranks: file.List[0].Devices, moeOnly: true}
	if ranks != 0 && ranks != p.Ranks {
		return nil, fmt.Errorf("%d ranks asked for, but the map has %d devices", ranks, p.Ranks)
	}
	for _, layer := range file.List {
		for _, device := range layer.List {
			p.Experts = max(p.Experts, mapped(device.Experts))
		}
	}
	if err := bounded(p.Experts, p.Ranks); err != nil {
		return nil, err
	}
	for _, layer := range file.List {
		held := make([][]int32, p.Ranks)
		if len(layer.List) != p.Ranks || layer.Devices != p.Ranks {
			return nil, fmt.Errorf("layer %d: want %d devices, have %d", layer.Layer, p.Ranks, len(layer.List))
		}
		for _, device := range layer.List {
			if device.Device < 0 || device.Device >= p.Ranks || held[device.Device] != nil {
				return nil, fmt.Errorf("layer %d: want each device from 0 to %d once, have %d", layer.Layer, p.Ranks-1,
					device.Device)
			}
			held[device.Device] = append([]int32{}, device.Experts...)
		}
		if err := p.placeHeld(layer.Layer, held); err != nil {
			return nil, err
		}
	}
	return p, nil
}
