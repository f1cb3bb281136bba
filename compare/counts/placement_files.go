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

const (
	vllmMapping    = "eplb_initial_mapping" // of pull request 41141, by MoE layer
	assignmentsKey = "initial_global_assignments"
)

// assigned is in every file of assignments, JSON or YAML.
var assigned = regexp.MustCompile(`(?m)(?:^\s*|"|')` + assignmentsKey + `["']?\s*:`)

// isPlacement reports a document that says where experts are. A bare list may be of counts.
func (d *document) isPlacement() bool {
	return d.has("layer_list") || d.has("physical_to_logical_map") || d.has("model_maps") ||
		d.binary == "" && assigned.Match(d.text)
}

// held is what a file says of a placement: the experts that each rank holds, by layer. Where ranks
// is 0 they are one list of slots, which ranks hold in equal consecutive runs.
type held struct {
	ranks   int
	layers  map[int][][]int32
	moeOnly bool // layers are numbered without dense ones
}

// held reads a document in the form that its keys tell. Of several records the first with a placement counts.
func (d *document) held() (h held, err error) {
	if d.isText() { // TensorRT-LLM's EPLB configuration, of the model's layers
		var file struct {
			Ranks  int              `yaml:"ep_size" json:"ep_size"`
			Slots  int              `yaml:"num_slots" json:"num_slots"`
			Layers map[string][]int `yaml:"initial_global_assignments" json:"initial_global_assignments"`
		}
		if err := yaml.Unmarshal(d.text, &file); err != nil && assigned.Match(d.text) {
			return h, errors.New("want initial_global_assignments as lists of experts by layer, such as 0: [0, 1, 2, 0]")
		}
		if file.Layers != nil {
			text, _ := json.Marshal(file) // numbers and lists
			d = &document{text: text}
		}
	}
	for v, err := range d.values() {
		h = held{layers: map[int][][]int32{}}
		if found, err := h.read(v); found || err != nil {
			return h, err
		}
		if err != nil {
			break
		}
	}
	return h, errors.New(
		"unknown placement format: want an EPLB configuration (num_slots, initial_global_assignments), an expert map " +
			"(layer_list), vLLM's eplb_initial_mapping or SGLang's physical_to_logical_map")
}

// read reads what one value says.
func (h *held) read(v any) (found bool, err error) {
	list, maps := part(v, "layer_list"), items(part(v, "model_maps"))
	switch p2l, slots := part(v, "physical_to_logical_map"), part(v, assignmentsKey); {
	case list != nil:
		return true, h.mapped(items(list))
	case p2l != nil:
		return true, h.listed(p2l)
	case len(maps) == 1: // a fork of vLLM writes maps by model
		h.moeOnly = true
		return true, h.listed(part(maps[0].Value, "physical_to_logical_map"))
	case maps != nil:
		return true, fmt.Errorf("want model_maps of one model, have %d", len(maps))
	case slots != nil:
		ranks, _ := number(part(v, "ep_size"))
		size, _ := number(part(v, "num_slots"))
		h.ranks, h.moeOnly = int(max(0, min(ranks, maxRanks+1))), word(part(v, "record_type")) == vllmMapping
		return true, h.assigned(items(slots), int(size))
	}
	_, found = v.(tensor.Stored)
	h.moeOnly = true
	if found {
		err = h.listed(v)
	}
	return found, err
}

// assigned reads the slots of layers, by number.
func (h *held) assigned(layers tensor.Parts, size int) error {
	for _, layer := range layers {
		n, err := strconv.Atoi(layer.Name)
		a, failed := arrayOf(layer.Value)
		if err = cmp.Or(err, failed); err != nil || n < 0 || n >= maxLayers || len(a.Values) != size {
			return fmt.Errorf("layer %s: want a list of %d slots (num_slots), have %d", layer.Name, size, len(a.Values))
		}
		experts, err := expertsOf(a.Values)
		if err != nil {
			return err
		}
		h.layers[n] = [][]int32{experts}
	}
	return nil
}

// mapped reads vllm-ascend's map, which numbers MoE layers alone.
func (h *held) mapped(layers tensor.Parts) error {
	h.moeOnly = true
	for _, layer := range layers {
		at, _ := number(part(layer.Value, "layer_id"))
		devices := items(part(layer.Value, "device_list"))
		if h.ranks = cmp.Or(h.ranks, len(devices)); h.ranks != len(devices) || len(devices) == 0 {
			return fmt.Errorf("layer %d: want a device_list of %d devices, have %d", at, h.ranks, len(devices))
		}
		byRank := make([][]int32, h.ranks)
		for _, device := range devices {
			rank, ok := number(part(device.Value, "device_id"))
			a, err := arrayOf(part(device.Value, "device_expert"))
			if err != nil || !ok || rank < 0 || rank >= int64(h.ranks) || byRank[rank] != nil {
				return fmt.Errorf("layer %d: want each of %d devices once, with device_expert", at, h.ranks)
			}
			if byRank[rank], err = expertsOf(a.Values); err != nil {
				return err
			}
		}
		h.layers[int(at)] = byRank
	}
	return nil
}

// listed reads slots of all layers [0 1 2 0], slots by layer, or experts by layer and rank.
func (h *held) listed(v any) error {
	a, err := arrayOf(v)
	n := len(a.Shape)
	if err == nil && (n < 1 || n > 3 || len(a.Values) == 0) {
		err = fmt.Errorf("want slots, layers × slots, or layers × ranks × experts, have %v", a.Shape)
	}
	if err != nil {
		return err
	}
	layer, perLayer := allLayers, 1
	if n == 3 {
		perLayer = int(a.Shape[1])
		h.ranks = perLayer
	}
	for row := range a.Rows() {
		experts, err := expertsOf(row)
		if err != nil {
			return err
		}
		if n > 1 && (layer == allLayers || len(h.layers[layer]) == perLayer) {
			layer++
		}
		h.layers[layer] = append(h.layers[layer], experts)
	}
	return nil
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
