package counts

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Placement says which rank holds which expert, layer by layer, with replicas.
type Placement struct {
	Source  string
	Experts int
	Ranks   int

	every   router.Layout         // of every layer, when layers is nil
	layers  map[int]router.Layout // by layer
	moeOnly bool                  // layer i is the model's i-th MoE layer, as vLLM numbers them
}

// Contiguous places the same contiguous experts in every layer; see
// router.Contiguous.
func Contiguous(experts, ranks int) (*Placement, error) {
	l, err := router.Contiguous(experts, ranks)
	if err != nil {
		return nil, err
	}
	return &Placement{Experts: experts, Ranks: ranks, every: l}, nil
}

// Layout is where the experts of one layer are.
func (p *Placement) Layout(layer int) (router.Layout, error) {
	if p.layers == nil {
		return p.every, nil
	}
	l, ok := p.layers[layer]
	if !ok {
		return router.Layout{}, fmt.Errorf("the placement %q has no layer %d", p.Source, layer)
	}
	return l, nil
}

// For is the placement by the layer numbers of a record. Files and records number the layers
// of the model, or its MoE layers alone, which moe, the model's MoE layers, tells. Without a model
// the numbers must agree: it is an error where the record has a layer that is not placed, where only
// the file numbers MoE layers alone, or where only the record may, as it begins at layer 0 and has
// fewer layers than are placed.
func (p *Placement) For(r *Record, moe []int) (*Placement, error) {
	layers, placed := r.Layers(), slices.Sorted(maps.Keys(p.layers))
	if p.layers == nil || len(layers) == 0 { // all layers share one layout
		return p, nil
	}
	if moe == nil {
		missing := slices.ContainsFunc(layers, func(l int) bool { return !slices.Contains(placed, l) })
		if missing || p.moeOnly && layers[0] > 0 || !p.moeOnly && layers[0] == 0 && len(layers) < len(placed) {
			return nil, fmt.Errorf("the placement %q is of layers %s, the counts are of layers %s: name the model, by --model, "+
				"which tells how they are numbered", p.Source, quantity.Ranges(placed), quantity.Ranges(layers))
		}
		return p, nil
	}
	// the record numbers MoE layers alone where it has a layer that is dense, but for layers of MTP, behind all others
	recordMoE := slices.ContainsFunc(layers, func(l int) bool {
		return !slices.Contains(moe, l) && len(moe) > 0 && l < moe[len(moe)-1]
	})
	switch {
	case recordMoE && slices.Max(layers) >= len(moe):
		return nil, fmt.Errorf("layer %d is none of the %s of the model", slices.Max(layers),
			quantity.Count(len(moe), "MoE layer"))
	case p.moeOnly && slices.Max(placed) >= len(moe):
		return nil, fmt.Errorf("the placement %q has MoE layer %d, the model %s", p.Source, slices.Max(placed),
			quantity.Count(len(moe), "MoE layer"))
	case p.moeOnly == recordMoE:
		return p, nil
	case p.moeOnly:
		return p.renumbered(func(l int) int { return moe[l] }), nil
	}
	return p.renumbered(func(l int) int { return slices.Index(moe, l) }), nil
}

// Placed are the layers that are placed one by one, by number; those of moe where it is not
// nil, else those that are not as dense layers stand in files: expert i mod experts in slot i.
func (p *Placement) Placed(moe []int) Slots {
	slots := Slots{}
	for layer, l := range p.layers {
		if moe != nil && slices.Contains(moe, layer) || moe == nil && !p.trivial(l) {
			slots[layer] = slotsOf(l)
		}
	}
	return slots
}

// Slots is the number of physical experts of the first layer.
func (p *Placement) Slots() int {
	l := p.every
	if layers := slices.Sorted(maps.Keys(p.layers)); len(layers) > 0 {
		l = p.layers[layers[0]]
	}
	return len(slotsOf(l))
}

// slotsOf are the experts of a layout, rank by rank.
func slotsOf(l router.Layout) (slots []int32) {
	for rank := range l.Ranks() {
		slots = append(slots, l.Held(rank)...)
	}
	return slots
}

// Same reports whether two placements have the same experts on the same ranks.
func (p *Placement) Same(other *Placement) bool {
	same := func(a, b router.Layout) bool {
		for rank := range min(a.Ranks(), b.Ranks()) {
			if !slices.Equal(slices.Sorted(slices.Values(a.Held(rank))), slices.Sorted(slices.Values(b.Held(rank)))) {
				return false
			}
		}
		return a.Ranks() == b.Ranks() && a.Experts() == b.Experts()
	}
	return same(p.every, other.every) && maps.EqualFunc(p.layers, other.layers, same)
}

// renumbered has other numbers of layers; those below 0 are left out.
func (p *Placement) renumbered(number func(int) int) *Placement {
	out := *p
	out.layers = map[int]router.Layout{}
	for layer, l := range p.layers {
		if n := number(layer); n >= 0 {
			out.layers[n] = l
		}
	}
	return &out
}

// trivial reports expert i mod experts in slot i.
func (p *Placement) trivial(l router.Layout) bool {
	slots := slotsOf(l)
	return len(slots) > 0 && slices.Equal(slots, trivial(len(slots), p.Experts))
}

func (p *Placement) replicated() bool {
	return p.every.Replicated() ||
		slices.ContainsFunc(slices.Collect(maps.Values(p.layers)), router.Layout.Replicated)
}

// placeSlots sets one layer from its physical slots, each naming a logical
// expert, divided into equal contiguous runs over the ranks.
func (p *Placement) placeSlots(layer int, slots []int32) error {
	if p.Ranks < 1 || len(slots)%p.Ranks != 0 {
		return fmt.Errorf("layer %d: %d slots do not divide over %d ranks", layer, len(slots), p.Ranks)
	}
	per := len(slots) / p.Ranks
	held := make([][]int32, p.Ranks)
	for rank := range held {
		held[rank] = slots[rank*per : (rank+1)*per]
	}
	return p.placeHeld(layer, held)
}

// placeHeld sets one layer from the experts that each rank holds.
func (p *Placement) placeHeld(layer int, held [][]int32) error {
	if len(held) != p.Ranks {
		return fmt.Errorf("layer %d: want %d ranks, have %d", layer, p.Ranks, len(held))
	}
	if _, ok := p.layers[layer]; ok {
		return fmt.Errorf("layer %d is placed twice", layer)
	}
	l, err := router.Placed(p.Experts, held)
	if err != nil {
		return fmt.Errorf("layer %d: %w", layer, err)
	}
	if p.layers == nil {
		p.layers = map[int]router.Layout{}
	}
	p.layers[layer] = l
	return nil
}
