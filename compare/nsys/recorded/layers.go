package recorded

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// InOrder renumbers the layers with load from 0, and returns their numbers; nil where
// there are not so many layers, or where they have these numbers.
func (c Counts) InOrder(layers int) (renumbered Counts, numbers []int) {
	numbers = c.loaded()
	if layers == 0 || len(numbers) != layers || numbers[layers-1] == layers-1 {
		return c, nil
	}
	renumbered = Counts{Load: map[int]router.Load{}, Layout: map[int]router.Layout{}}
	for i, number := range numbers {
		renumbered.Load[i] = c.Load[number]
		if layout, ok := c.Layout[number]; ok {
			renumbered.Layout[i] = layout
		}
	}
	return renumbered, numbers
}

// loaded are the layers with any load, ascending.
func (c Counts) loaded() (layers []int) {
	for _, layer := range slices.Sorted(maps.Keys(c.Load)) {
		if load := c.Load[layer]; load.Total() > 0 {
			layers = append(layers, layer)
		}
	}
	return layers
}

// layers compares the layers in which experts work. Recorded layers without any
// load are no evidence: some recorders list the dense ones too.
func (c *check) layers() error {
	worked, recorded := map[int]bool{}, map[int]bool{}
	for _, layer := range c.loaded() {
		recorded[layer] = true
	}
	for at := range c.Trace.Layers {
		worked[at.Layer] = true
	}
	switch {
	case len(worked) == 0:
		c.warn("counts_layers", "why", "no_time")
		return nil
	case len(recorded) == 0:
		c.warn("counts_layers", "why", "zero")
		return nil
	}
	without, idle := missingFrom(worked, recorded), missingFrom(recorded, worked)
	switch {
	case len(without) == len(worked), len(without) > 0 && len(idle) > 0:
		return fmt.Errorf("%w: counts of layers %s, experts run in layers %s; number both the same way", ErrMismatch,
			numberList(slices.Collect(maps.Keys(recorded))), numberList(slices.Collect(maps.Keys(worked))))
	case c.deeper(worked, idle):
		return fmt.Errorf("%w: counts up to layer %d, and the last layer with experts is %d on every rank of the trace",
			ErrMismatch, slices.Max(idle), slices.Max(slices.Collect(maps.Keys(worked))))
	}
	if len(without) > 0 {
		c.warn("counts_layers", "why", "without", "layers", without)
	}
	if len(idle) > 0 {
		c.warn("counts_layers", "why", "idle", "layers", idle)
	}
	return nil
}

// missingFrom lists what is in one set and not in the other.
func missingFrom(have, other map[int]bool) (layers []int) {
	for layer := range have {
		if !other[layer] {
			layers = append(layers, layer)
		}
	}
	return layers
}

// depthMargin is the share of a model's layers that counts may have beyond those of
// a trace: layers that predict further tokens come last, and their ranges often go
// by another name.
const depthMargin = 0.1

// deeper reports whether counts are of a deeper model than that of the trace. Every
// step goes through all layers, so that a trace lacks some only where other ranks have
// them (pipelines) or where the program runs single layers: all ranks must be there,
// each with the same layers, and the counts go on behind the last of them.
func (c *check) deeper(worked map[int]bool, idle []int) bool {
	if float64(len(idle)) <= depthMargin*float64(len(worked)+len(idle)) ||
		slices.Min(idle) < slices.Max(slices.Collect(maps.Keys(worked))) {
		return false
	}
	for _, layout := range c.Layout {
		if len(c.Ranks) != layout.Ranks() {
			return false
		}
	}
	return len(c.Trace.Layers) == len(worked)*len(c.Ranks) && len(c.Layout) > 0 && !c.SingleLayers
}
