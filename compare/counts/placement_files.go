package counts

import (
	"encoding/json"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router/placement"
	"github.com/moebalance/moebalance/router/quantity"
)

// configuration is the tree of TensorRT-LLM's EPLB configuration, which is YAML.
func configuration(text []byte) any {
	var file struct {
		Ranks  int              `yaml:"ep_size" json:"ep_size"`
		Slots  int              `yaml:"num_slots" json:"num_slots"`
		Layers map[string][]int `yaml:"initial_global_assignments" json:"initial_global_assignments"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil || len(file.Layers) == 0 {
		fail("want initial_global_assignments as lists of experts by layer, such as 0: [0, 1, 2, 0]")
	}
	return celled(string(must(json.Marshal(file))))
}

// hold takes the slots that one field of an object names.
func (c *collector) hold(of *context, key string, v any) {
	switch key {
	case "recordtype":
		c.moeOnly = c.moeOnly || word(v) == placement.VLLMMapping
	case "logicalcountlayout": // of a fork of SGLang
		fail("want the sum over the ranks, have logical_count as %v", v)
	case "modelmaps": // of a fork of vLLM
		if models, _ := v.(map[string]any); len(models) != 1 {
			fail("want one model, have %d", len(models))
		}
		c.moeOnly = true
	case "devicelist": // of vllm-ascend, in any order
		c.moeOnly = true
		devices := listOf(v)
		held := make([]any, len(devices))
		for _, device := range devices {
			id, err := number(part(device, "device_id"))
			if err != nil || id < 0 || id >= int64(len(held)) || held[id] != nil {
				fail("want each of %d devices once, from 0 on, with equally many experts as device_expert", len(devices))
			}
			held[id] = part(device, "device_expert")
		}
		all := arrayOf(held)
		all.Shape = append([]int64{1}, all.Shape...)
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
	n, layer, width := len(a.Shape), max(placement.AllLayers, int(of.numbers[isLayer])), len(a.Values)
	if n < 1 || n > 3 || width == 0 || a.Shape[0] > maxLayers {
		fail("want slots, layers × slots, or layers × ranks × experts, have %v", a.Shape)
	}
	if most := slices.Max(a.Values); n == 3 && most+1 < a.Shape[2] {
		fail("%d slots on a rank for %d experts: want the numbers of experts, no mask of 0 and 1", a.Shape[2], most+1)
	}
	if n > 1 {
		layer, width = max(0, layer), width/int(a.Shape[0])
	}
	if n == 3 {
		of.numbers[isRanks] = a.Shape[1]
	}
	c.onRanks(of.numbers[isRanks])
	of.copies = placement.Slots{}
	for row := range slices.Chunk(a.Values, width) {
		experts := make([]int32, width)
		for i, e := range row {
			if e < placement.NoExpert || e >= maxExperts {
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
func ReadPlacement(path string, ranks int) (p *placement.Map, err error) {
	err = reading(path, func() { p = openDocument(path).placement(ranks) })
	return p, err
}

// placement reads the document as a placement.
func (d *document) placement(ranks int) *placement.Map {
	c := newCollector(d)
	c.placing = true
	c.read(d)
	switch {
	case len(c.placed) == 0 && d.broken != nil:
		fail("%w", d.broken)
	case len(c.placed) == 0:
		fail("it names no layer: want initial_global_assignments, layer_list or physical_to_logical_map")
	case c.Ranks != 0 && ranks != 0 && c.Ranks != ranks:
		fail("%s asked for, but the file is of %d", quantity.Count(ranks, "rank"), c.Ranks)
	case max(c.Ranks, ranks) < 1:
		fail("slots over an unknown number of ranks: give the EP size, by --ep")
	}
	experts := 0
	for _, slots := range c.placed {
		experts = max(experts, int(slices.Max(slots))+1)
	}
	p := must(placement.MapOf(d.path, experts, max(c.Ranks, ranks), c.placed))
	p.MoEOnly = c.moeOnly
	return p
}
