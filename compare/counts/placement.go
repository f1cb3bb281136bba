package counts

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Slots are the logical experts of the physical slots of each layer, equally many in
// every one, which fall to the ranks in equal consecutive runs.
type Slots map[int][]int32

// noExpert stands in maps for a slot without an expert, as on ranks that vLLM has masked.
const noExpert = -1

// Placement says which rank holds which expert, layer by layer, with replicas.
type Placement struct {
	Source  string
	Experts int
	Ranks   int

	layers  map[int]router.Layout // by layer, or of allLayers
	moeOnly bool                  // layer i is the model's i-th MoE layer, as vLLM numbers them
}

// allLayers is the number of a layer that stands for every one.
const allLayers = -1

// Contiguous places the same contiguous experts in every layer; see
// router.Contiguous.
func Contiguous(experts, ranks int) (*Placement, error) {
	l, err := router.Contiguous(experts, ranks)
	return &Placement{Experts: experts, Ranks: ranks, layers: map[int]router.Layout{allLayers: l}}, err
}

// placed is the placement of slots on ranks.
func placed(source string, experts, ranks int, slots Slots) (*Placement, error) {
	p := &Placement{Source: source, Experts: experts, Ranks: ranks, layers: map[int]router.Layout{}}
	for _, layer := range slices.Sorted(maps.Keys(slots)) {
		n, err := len(slots[layer]), error(nil)
		if n%ranks != 0 || n == 0 {
			err = fmt.Errorf("%d slots do not divide over %d ranks", n, ranks)
		} else {
			var held [][]int32
			for slots := range slices.Chunk(slots[layer], n/ranks) {
				held = append(held, slices.DeleteFunc(slices.Clone(slots), func(e int32) bool { return e == noExpert }))
			}
			p.layers[layer], err = router.Placed(experts, held)
		}
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", max(0, layer), err)
		}
	}
	return p, nil
}

// Layout is where the experts of one layer are; of no placement the zero layout.
func (p *Placement) Layout(layer int) (router.Layout, error) {
	if p == nil {
		return router.Layout{}, nil
	}
	for _, number := range []int{allLayers, layer} {
		if l, ok := p.layers[number]; ok {
			return l, nil
		}
	}
	return router.Layout{}, fmt.Errorf("the placement %q has no layer %d", p.Source, layer)
}

// For is the placement by the layer numbers of a record. Files and records number the layers
// of the model, or its MoE layers alone, which moe, the model's MoE layers, tells. Without a model
// the numbers must agree: it is an error where the record has a layer that is not placed, where only
// the file numbers MoE layers alone, or where only the record may, as it begins at layer 0 and has
// fewer layers than are placed.
func (p *Placement) For(r *Record, moe []int) (*Placement, error) {
	layers, own := r.Layers(), slices.Sorted(maps.Keys(p.layers))
	if len(layers) == 0 || own[0] == allLayers {
		return p, nil
	}
	say := fmt.Sprintf("the placement %q is of layers %s, the counts are of layers %s", p.Source, quantity.Ranges(own),
		quantity.Ranges(layers))
	missing := slices.ContainsFunc(layers, func(l int) bool { return !slices.Contains(own, l) })
	// the record numbers MoE layers alone where it has a layer that is dense, but for layers of MTP, behind all others
	recordMoE := slices.ContainsFunc(layers, func(l int) bool {
		return !slices.Contains(moe, l) && len(moe) > 0 && l < moe[len(moe)-1]
	})
	switch {
	case moe == nil && (missing || p.moeOnly && layers[0] > 0 ||
		!p.moeOnly && layers[0] == 0 && len(layers) < len(own)):
		return nil, fmt.Errorf("%s: name the model, by --model, which tells how they are numbered", say)
	case moe != nil && (recordMoE && slices.Max(layers) >= len(moe) || p.moeOnly && slices.Max(own) >= len(moe)):
		return nil, fmt.Errorf("%s, and the model has %s", say, quantity.Count(len(moe), "MoE layer"))
	case moe == nil || p.moeOnly == recordMoE:
		return p, nil
	}
	out := *p
	out.layers = map[int]router.Layout{}
	for from, to := range moe {
		if recordMoE {
			from, to = to, from
		}
		if l, ok := p.layers[from]; ok {
			out.layers[to] = l
		}
	}
	return &out, nil
}

// Placed are the layers that are placed one by one, by number: where moe is given its layers alone, else
// all but dense layers, which stand in files as expert i mod experts in slot i.
func (p *Placement) Placed(moe []int) Slots {
	slots := Slots{}
	for layer, l := range p.layers {
		list := SlotsOf(l)
		if moe != nil && slices.Contains(moe, layer) ||
			moe == nil && layer != allLayers && !slices.Equal(list, trivial(len(list), p.Experts)) {
			slots[layer] = list
		}
	}
	return slots
}

// Slots is the number of physical experts of the first layer.
func (p *Placement) Slots() int {
	return len(SlotsOf(p.layers[slices.Min(slices.Collect(maps.Keys(p.layers)))]))
}

// SlotsOf are the experts of a layout, rank by rank.
func SlotsOf(l router.Layout) (slots []int32) {
	for rank := range l.Ranks() {
		slots = append(slots, l.Held(rank)...)
	}
	return slots
}
