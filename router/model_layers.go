package router

import (
	"fmt"
	"slices"
	"strings"
)

// otherLayers lists the layers without routed experts, and the layers that find them by
// hashing the token, whatever its logits.
func (c *modelConfig) otherLayers(m Model) (dense, hash []int, err error) {
	types, err := c.layerTypes(m.Layers)
	if err != nil {
		return nil, nil, err
	}
	sparse, hashed := c.sparse(m.Layers), c.hashLayers(m)
	dense, hash = []int{}, []int{}
	for l := range m.Layers {
		isSparse, isHash := sparse[l], l < hashed
		if len(types) > 0 {
			isSparse, isHash = slices.Contains(expertLayers, types[l]), types[l] == hashLayer
		}
		switch {
		case !isSparse:
			dense = append(dense, l)
		case isHash:
			hash = append(hash, l)
		}
	}
	if c.err == nil && len(dense)+len(hash) == m.Layers {
		return nil, nil, fmt.Errorf("none of its %d layers has routed experts", m.Layers)
	}
	return dense, hash, c.err
}

const hashLayer = "hash_moe"

// expertLayers are the names of layers with experts, in mlp_layer_types and lists of blocks.
var expertLayers = []string{"sparse", "moe", hashLayer, "E"}

// layerTypes is what stands in each layer, nil where no field lists it; the list decides
// alone.
func (c *modelConfig) layerTypes(layers int) ([]string, error) {
	name, list := "mlp_layer_types", c.words("mlp_layer_types")
	for layer, kind := range list {
		if kind != "dense" && !slices.Contains(expertLayers, kind) {
			return nil, fmt.Errorf("mlp_layer_types: want dense, sparse, moe or hash_moe for layer %d, have %q", layer, kind)
		}
	}
	if list == nil {
		name, list = "the list of blocks", c.blocks()
	}
	return perLayer(c, name, list, layers)
}

// blocks are the layers of a model in which attention, dense layers and experts take turns:
// a letter each in hybrid_override_pattern (E for experts), or a word.
func (c *modelConfig) blocks() []string {
	if pattern := c.text("hybrid_override_pattern"); pattern != "" {
		return strings.Split(pattern, "")
	}
	for _, name := range []string{"layers_block_type", "layer_types"} {
		if list := c.words(name); slices.Contains(list, "moe") {
			return list
		}
	}
	return nil
}

// perLayer is a list with an entry for each layer. Layers that predict further tokens may
// stand behind; they are cut off.
func perLayer[T any](c *modelConfig, name string, list []T, layers int) ([]T, error) {
	further := c.number("num_nextn_predict_layers")
	if n := len(list); n > 0 && n != layers && n != layers+further {
		return nil, fmt.Errorf("%s lists %d layers, num_hidden_layers is %d", name, n, layers)
	}
	return list[:min(len(list), layers)], nil
}

// hashLayers is how many of the first layers choose experts by token, not by logits.
// DeepSeek-V4's config may leave their number out, which is 3 then.
func (c *modelConfig) hashLayers(m Model) int {
	if n, name := read[int](c, "num_hash_layers", "n_hash_layers"); name != "" || familyOf(m) != "deepseekv4" {
		return n
	}
	return 3
}

// everyFields say in every how many layers experts stand: in those whose number plus shift
// the field's value divides.
var everyFields = []struct {
	name  string
	shift int
}{{"moe_layer_freq", 0}, {"route_every_n", 0}, {"expert_layer_period", 0}, {"decoder_sparse_step", 1},
	{"interleave_moe_layer_step", 1}, {"moe_layer_interval", 1}}

// sparse are the layers with experts, where no list of types decides: those in which every
// field allows them.
func (c *modelConfig) sparse(layers int) []bool {
	first, last := 0, layers-1
	for _, name := range []string{"first_k_dense_replace", "num_dense_layers", "n_dense_layers",
		"moe_layer_num_skipped", "moe_layer_start_index"} {
		first = max(first, c.atLeast(name, 0))
	}
	if end, said := read[int](c, "moe_layer_end_index"); said != "" && end >= 0 {
		last = end
	}
	none, only := c.list("mlp_only_layers"), slices.Concat(c.list("moe_layers"), c.list("moe_layers_enum"))
	sparse := make([]bool, layers)
	for l := range sparse {
		sparse[l] = l >= first && l <= last && !slices.Contains(none, l) && (only == nil || slices.Contains(only, l))
	}
	for _, every := range everyFields {
		if !c.has(every.name) || c.isList(every.name) || every.name == "interleave_moe_layer_step" && only != nil {
			continue
		}
		n, shift := max(1, c.atLeast(every.name, 1)), every.shift
		if every.name == "expert_layer_period" {
			shift = -c.number("expert_layer_offset")
		}
		for l := range sparse {
			sparse[l] = sparse[l] && (l+shift)%n == 0
		}
	}
	for _, name := range []string{"moe_layer_freq", "is_moe_layer"} {
		if c.isList(name) {
			c.mask(sparse, name)
		}
	}
	return sparse
}

// mask takes the layers out for which a list has 0 or false.
func (c *modelConfig) mask(sparse []bool, name string) {
	list, err := perLayer(c, name, c.list(name), len(sparse))
	if err != nil {
		c.fail(err)
	}
	for layer, flag := range list {
		if flag != 0 && flag != 1 {
			c.fail(fmt.Errorf("%s: want 1 or 0 for layer %d, have %d", name, layer, flag))
		}
		sparse[layer] = sparse[layer] && flag == 1
	}
}
