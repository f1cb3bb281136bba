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

	"github.com/moebalance/moebalance/router"
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

// assignments are the logical expert of every physical slot, layer by layer: of the model's layers in TensorRT-LLM's
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

// isPlacement reports a document that says where experts are. A bare list may be of counts.
func (d *document) isPlacement() bool {
	return d.has("layer_list") || d.has("physical_to_logical_map") || d.has("model_maps") ||
		(d.isText() || d.first.json != nil) && assignmentsKey.Match(d.text)
}

// held is what a file says of a placement: the experts that each rank holds, by layer. Where ranks
// is 0 they are one list of slots, which ranks hold in equal consecutive runs.
type held struct {
	ranks   int
	layers  map[int][][]int32
	moeOnly bool // layers are numbered without dense ones
}

// held reads a document in the form that its keys tell.
func (d *document) held() (held, error) {
	switch models := d.keys["model_maps"]; {
	case d.has("layer_list"):
		return d.mapped()
	case d.has("physical_to_logical_map"):
		return listed(d.keys["physical_to_logical_map"], false)
	case models.isObject(): // a fork of vLLM writes maps by model
		maps, err := models.parts()
		if err != nil || len(maps) != 1 {
			return held{}, fmt.Errorf("want model_maps of one model, have %d", len(maps))
		}
		return listed(maps[0].part("physical_to_logical_map"), true)
	case d.isPlacement():
		return d.assigned()
	case d.first.isList():
		return listed(d.first, true)
	}
	return held{}, errors.New(
		"unknown placement format: want an EPLB configuration (num_slots, initial_global_assignments), an expert map " +
			"(layer_list), vLLM's eplb_initial_mapping or SGLang's physical_to_logical_map")
}

// assigned reads assignments; vLLM's are one of several records where they are JSONL.
func (d *document) assigned() (held, error) {
	var file assignments
	err := error(nil)
	if d.isText() {
		err = yaml.Unmarshal(d.text, &file)
	}
	for v, failed := range d.values() {
		if d.isText() || failed != nil || file.Layers != nil {
			break
		}
		err = json.Unmarshal(v.json, &file)
	}
	h := held{file.Ranks, map[int][][]int32{}, file.Type == vllmMapping}
	if err != nil {
		return h, errors.New("want initial_global_assignments as lists of experts by layer, such as 0: [0, 1, 2, 0]")
	}
	for layer, slots := range file.Layers {
		if len(slots) != file.Slots {
			return h, fmt.Errorf("layer %d: want %d slots (num_slots), have %d", layer, file.Slots, len(slots))
		}
		h.layers[layer] = [][]int32{slots}
	}
	return h, nil
}

// mapped reads vllm-ascend's map.
func (d *document) mapped() (held, error) {
	var file expertMap
	err := json.Unmarshal(d.first.json, &file)
	h := held{0, map[int][][]int32{}, true}
	if err != nil || len(file.List) == 0 || len(file.List) != file.Layers {
		return h, fmt.Errorf("want %s (moe_layer_count) in layer_list, each with a device_list, have %d",
			quantity.Count(file.Layers, "layer"), len(file.List))
	}
	h.ranks = file.List[0].Devices
	for _, layer := range file.List {
		slices.SortFunc(layer.List, func(a, b expertMapDevice) int { return cmp.Compare(a.Device, b.Device) })
		for rank, device := range layer.List {
			if device.Device == rank && len(h.layers[layer.Layer]) == rank {
				h.layers[layer.Layer] = append(h.layers[layer.Layer], device.Experts)
			}
		}
		if have := len(h.layers[layer.Layer]); have != h.ranks || len(layer.List) != have || layer.Devices != have {
			return h, fmt.Errorf("layer %d: want each of %d devices once, have %d of %d", layer.Layer, h.ranks, have,
				len(layer.List))
		}
	}
	return h, nil
}

// listed reads slots of all layers [0 1 2 0], slots by layer, or experts by layer and rank.
func listed(v value, moeOnly bool) (held, error) {
	a, err := v.array()
	n := len(a.Shape)
	if err == nil && (n < 1 || n > 3 || len(a.Values) == 0) {
		err = fmt.Errorf("want slots, layers × slots, or layers × ranks × experts, have %v", a.Shape)
	}
	if err != nil {
		return held{}, err
	}
	h, layer, perLayer := held{layers: map[int][][]int32{}, moeOnly: moeOnly}, allLayers, 1
	if n == 3 {
		perLayer = int(a.Shape[1])
		h.ranks = perLayer
	}
	for row := range a.Rows() {
		experts, err := expertsOf(row)
		if err != nil {
			return h, err
		}
		if n > 1 && (layer == allLayers || len(h.layers[layer]) == perLayer) {
			layer++
		}
		h.layers[layer] = append(h.layers[layer], experts)
	}
	return h, nil
}

// ReadPlacement reads where the experts are: a file of an engine, a fork's maps by model, or bare lists: of slots for
// all layers, of slots by layer, or of experts by layer and rank. ranks is the EP size for files that
// list slots only; 0 where the file says it. Errors are of type *input.Error.
func ReadPlacement(path string, ranks int) (*Placement, error) {
	var p *Placement
	text, err := input.ReadFile(path, maxFile)
	if err == nil {
		p, err = parsePlacement(path, text, ranks)
	}
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
	h, err := d.held()
	switch {
	case err != nil:
		return nil, err
	case len(h.layers) == 0:
		return nil, errors.New("it names no layer (initial_global_assignments, physical_to_logical_map or layer_list)")
	case h.ranks != 0 && ranks != 0 && h.ranks != ranks:
		return nil, fmt.Errorf("%s asked for, but the file is of %d", quantity.Count(ranks, "rank"), h.ranks)
	case max(h.ranks, ranks) < 1:
		return nil, fmt.Errorf("slots over an unknown number of ranks: %w", ErrRanks)
	}
	p := &Placement{Source: path, Ranks: max(h.ranks, ranks), moeOnly: h.moeOnly, layers: map[int]router.Layout{}}
	for _, experts := range h.layers {
		p.Experts = max(p.Experts, int(slices.Max(append(slices.Concat(experts...), -1)))+1)
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
	rows := map[int][]int32{}
	for i, layer := range moe {
		if rows[i] = s[layer]; rows[i] == nil {
			rows[i] = trivial(slots, experts)
		}
	}
	switch engine {
	case TensorRT:
		text := fmt.Sprintf("num_slots: %d\ninitial_global_assignments:\n", slots)
		for _, layer := range own {
			text += fmt.Sprintf("  %d: %s\n", layer, strings.ReplaceAll(fmt.Sprint(s[layer]), " ", ", "))
		}
		_, err := io.WriteString(w, text+"layer_updates_per_iter: 0\n")
		return err
	case SGLang:
		list := make([][]int32, len(rows))
		for i := range list {
			list[i] = rows[i]
		}
		return json.NewEncoder(w).Encode(map[string]any{"physical_to_logical_map": list})
	case VLLM:
		return json.NewEncoder(w).Encode(assignments{Type: vllmMapping, Version: 1, Redundant: slots - experts, Slots: slots,
			Layers: rows})
	}
	file := expertMap{Layers: len(rows)}
	for i := range len(rows) {
		layer := expertMapLayer{Layer: i, Devices: ranks}
		for held := range slices.Chunk(rows[i], slots/ranks) {
			layer.List = append(layer.List, expertMapDevice{len(layer.List), held})
		}
		file.List = append(file.List, layer)
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
