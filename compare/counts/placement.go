package counts

import (
	"fmt"

	"github.com/moebalance/moebalance/router"
)

// Placement says which rank holds which expert, layer by layer, with replicas.
type Placement struct {
	Source  string
	Experts int
	Ranks   int

	every  router.Layout         // of every layer, when layers is nil
	layers map[int]router.Layout // by layer
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

// uniform reports whether all layers share one layout.
func (p *Placement) uniform() bool { return p.layers == nil }

func (p *Placement) replicated() bool {
	for _, l := range p.layers {
		if l.Replicated() {
			return true
		}
	}
	return p.every.Replicated()
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
