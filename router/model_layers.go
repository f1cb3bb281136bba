package router

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const hashLayer = "hash_moe"

// expertLayers are the names of layers with experts, in mlp_layer_types and lists of blocks.
var expertLayers = []string{"sparse", "moe", hashLayer, "E"}

// otherLayers lists the layers without routed experts, and the layers that find them by
// hashing the token, whatever its logits. A list of what stands in each layer decides alone; else a layer has experts
// if every field allows them.
func (c modelConfig) otherLayers(m Model) (dense, hash []int, err error) {
	types, every, everyLast, masks := c.MLPTypes, 1, max(1, int(c.EveryLast)), []numbers{c.Mask}
	if types == nil {
		types = c.blocks()
	}
	if len(c.Every) == 1 {
		every = c.Every[0]
	} else {
		masks = append(masks, c.Every)
	}
	for _, n := range []int{len(types), len(c.Mask), len(masks[len(masks)-1])} {
		if n > 0 && n != m.Layers && n != m.Layers+max(0, int(c.Further)) { // layers that predict further tokens stand behind
			return nil, nil, fmt.Errorf("a list of the config lists %d layers, num_hidden_layers is %d", n, m.Layers)
		}
	}
	if every < 1 {
		return nil, nil, fmt.Errorf("want experts in every layer, or every other, have every %d", every)
	}
	hashed := c.hashLayers()
	dense, hash = []int{}, []int{}
	for l := range m.Layers {
		sparse, isHash := l >= int(c.First) && (l-int(c.Offset))%every == 0 && !slices.Contains(c.Never, l), l < hashed
		sparse = sparse && (c.Last == nil || *c.Last < 0 || l <= int(*c.Last))
		if c.Only != nil {
			sparse = sparse && slices.Contains(c.Only, l)
		} else {
			sparse = sparse && (l+1)%everyLast == 0
		}
		for _, mask := range masks {
			if len(mask) > 0 && mask[l] != 0 && mask[l] != 1 {
				return nil, nil, fmt.Errorf("want 1 or 0 for layer %d, have %d", l, mask[l])
			}
			sparse = sparse && (len(mask) == 0 || mask[l] == 1)
		}
		if len(types) > 0 {
			sparse, isHash = slices.Contains(expertLayers, types[l]), types[l] == hashLayer
			if c.MLPTypes != nil && !sparse && types[l] != "dense" {
				return nil, nil, fmt.Errorf("mlp_layer_types: want dense, sparse, moe or hash_moe for layer %d, have %q", l,
					types[l])
			}
		}
		if !sparse {
			dense = append(dense, l)
		} else if isHash {
			hash = append(hash, l)
		}
	}
	if len(dense)+len(hash) == m.Layers {
		return nil, nil, fmt.Errorf("none of its %d layers has routed experts", m.Layers)
	}
	return dense, hash, nil
}

// blocks are the layers of a model in which attention, dense layers and experts take turns.
func (c modelConfig) blocks() []string {
	if c.Pattern != "" {
		return strings.Split(c.Pattern, "")
	}
	for _, list := range [][]string{c.Types, c.OtherTypes} {
		if slices.Contains(list, "moe") {
			return list
		}
	}
	return nil
}

// hashLayers is how many of the first layers choose experts by token, not by logits.
// DeepSeek-V4's config may leave their number out, which is 3 then.
func (c modelConfig) hashLayers() int {
	if c.Hash == nil && c.family() == "deepseekv4" {
		return 3
	}
	return int(*cmp.Or(c.Hash, new(same)))
}
