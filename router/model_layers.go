package router

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const hashLayer = "hash_moe"

// expertLayers are the names of layers with experts, in mlp_layer_types and lists of blocks.
var expertLayers = []string{"sparse", "moe", hashLayer, "E"}

// otherLayers lists the layers without routed experts, and the layers that find them by
// hashing the token, whatever its logits. A list of what stands in each layer decides alone.
func (c modelConfig) otherLayers(m Model) (dense, hash []int, err error) {
	for layer, kind := range c.MLPTypes {
		if kind != "dense" && !slices.Contains(expertLayers, kind) {
			return nil, nil, fmt.Errorf("mlp_layer_types: want dense, sparse, moe or hash_moe for layer %d, have %q", layer,
				kind)
		}
	}
	types := c.MLPTypes
	if types == nil {
		types = c.blocks()
	}
	sparse, err := c.sparse(m.Layers)
	if err := errors.Join(err, c.perLayer(len(types), m.Layers)); err != nil {
		return nil, nil, err
	}
	dense, hash = []int{}, []int{}
	hashed := c.hashLayers()
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

// perLayer is an error unless a list has an entry for each layer, or none. Layers that predict further tokens
// may stand behind.
func (c modelConfig) perLayer(n, layers int) error {
	if n > 0 && n != layers && n != layers+int(c.Further) {
		return fmt.Errorf("a list of the config lists %d layers, num_hidden_layers is %d", n, layers)
	}
	return nil
}

// hashLayers is how many of the first layers choose experts by token, not by logits.
// DeepSeek-V4's config may leave their number out, which is 3 then.
func (c modelConfig) hashLayers() int {
	switch {
	case c.Hash != nil:
		return int(*c.Hash)
	case c.family() == "deepseekv4":
		return 3
	}
	return 0
}

// sparse are the layers with experts, where no list of types decides: those in which every
// field allows them.
func (c modelConfig) sparse(layers int) ([]bool, error) {
	last, every, everyLast, masks := layers-1, 1, max(1, int(c.EveryLast)), []numbers{c.Mask}
	if c.Last != nil && *c.Last >= 0 {
		last = int(*c.Last)
	}
	if len(c.Every) == 1 {
		every = c.Every[0]
	} else {
		masks = append(masks, c.Every)
	}
	if every < 1 {
		return nil, fmt.Errorf("want experts in every layer, or every other, have every %d", every)
	}
	sparse := make([]bool, layers)
	for l := range sparse {
		sparse[l] = l >= int(c.First) && l <= last && (l-int(c.Offset))%every == 0 && !slices.Contains(c.Never, l)
		if c.Only != nil {
			sparse[l] = sparse[l] && slices.Contains(c.Only, l)
		} else {
			sparse[l] = sparse[l] && (l+1)%everyLast == 0
		}
	}
	for _, mask := range masks {
		if err := c.perLayer(len(mask), layers); err != nil {
			return nil, err
		}
		for l, flag := range mask[:min(len(mask), layers)] {
			if flag != 0 && flag != 1 {
				return nil, fmt.Errorf("want 1 or 0 for layer %d, have %d", l, flag)
			}
			sparse[l] = sparse[l] && flag == 1
		}
	}
	return sparse, nil
}
