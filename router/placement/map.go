package placement

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

// NoExpert stands in maps for a slot without an expert, as on ranks that vLLM has masked.
const NoExpert = -1

// Map says which rank holds which expert, layer by layer, with replicas.
type Map struct {
	Source  string
	Experts int
	Ranks   int
	Slots   int  // of each layer, without an expert or with one
	MoEOnly bool // layer i is the model's i-th MoE layer, as vLLM numbers them

	layers map[int]router.Layout // by layer, or of AllLayers
}

// AllLayers is the number of a layer that stands for every one.
const AllLayers = -1

// Contiguous places the same contiguous experts in every layer; see
// router.Contiguous.
func Contiguous(experts, ranks int) (*Map, error) {
	l, err := router.Contiguous(experts, ranks)
	return &Map{Experts: experts, Ranks: ranks, layers: map[int]router.Layout{AllLayers: l}}, err
}

// MapOf is the map of slots on ranks.
func MapOf(source string, experts, ranks int, slots Slots) (*Map, error) {
	p := &Map{Source: source, Experts: experts, Ranks: ranks, layers: map[int]router.Layout{}}
	for _, layer := range slices.Sorted(maps.Keys(slots)) {
		if n := len(slots[layer]); n == 0 || n%ranks != 0 {
			return nil, fmt.Errorf("layer %d: %d slots do not divide over %d ranks", max(0, layer), n, ranks)
		}
		l, err := Layout(experts, slots[layer], ranks)
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", max(0, layer), err)
		}
		p.layers[layer], p.Slots = l, len(slots[layer])
	}
	return p, nil
}

// Layout is where the experts of one layer are; of no placement the zero layout.
func (m *Map) Layout(layer int) (router.Layout, error) {
	if m == nil {
		return router.Layout{}, nil
	}
	for _, number := range []int{AllLayers, layer} {
		if l, ok := m.layers[number]; ok {
			return l, nil
		}
	}
	return router.Layout{}, fmt.Errorf("the placement %q has no layer %d", m.Source, layer)
}

// For is the map by the layer numbers of a record, which has these layers. Files and records number the layers
// of the model, or its MoE layers alone, which moe, the model's MoE layers, tells. Without a model
// the numbers must agree: it is an error where the record has a layer that is not placed, where only
// the file numbers MoE layers alone, or where only the record may, as it begins at layer 0 and has
// fewer layers than are placed.
func (m *Map) For(layers, moe []int) (*Map, error) {
	own := slices.Sorted(maps.Keys(m.layers))
	if len(layers) == 0 || own[0] == AllLayers {
		return m, nil
	}
	say := fmt.Sprintf("the placement %q is of layers %s, the counts are of layers %s", m.Source, quantity.Ranges(own),
		quantity.Ranges(layers))
	missing := slices.ContainsFunc(layers, func(l int) bool { return !slices.Contains(own, l) })
	// the record numbers MoE layers alone where it has a layer that is dense, but for layers of MTP, behind all others
	recordMoE := slices.ContainsFunc(layers, func(l int) bool {
		return !slices.Contains(moe, l) && len(moe) > 0 && l < moe[len(moe)-1]
	})
	switch {
	case moe == nil && (missing || m.MoEOnly && layers[0] > 0 ||
		!m.MoEOnly && layers[0] == 0 && len(layers) < len(own)):
		return nil, fmt.Errorf("%s: name the model, by --model, which tells how they are numbered", say)
	case moe != nil && (recordMoE && slices.Max(layers) >= len(moe) || m.MoEOnly && slices.Max(own) >= len(moe)):
		return nil, fmt.Errorf("%s, and the model has %s", say, quantity.Count(len(moe), "MoE layer"))
	case moe == nil || m.MoEOnly == recordMoE:
		return m, nil
	}
	out := *m
	out.layers = map[int]router.Layout{}
	for from, to := range moe {
		if recordMoE {
			from, to = to, from
		}
		if l, ok := m.layers[from]; ok {
			out.layers[to] = l
		}
	}
	return &out, nil
}

// Uniform reports one layout of all layers.
func (m *Map) Uniform() bool {
	return m != nil && len(m.layers) == 1 && m.layers[AllLayers].Ranks() > 0
}

// Placed are the layers that are placed one by one, by number: where moe is given its layers alone, else
// all but dense layers, which stand in files as expert i mod experts in slot i.
func (m *Map) Placed(moe []int) map[int]router.Layout {
	layouts := maps.Clone(m.layers)
	maps.DeleteFunc(layouts, func(layer int, l router.Layout) bool {
		return moe != nil && !slices.Contains(moe, layer) ||
			moe == nil && (layer == AllLayers || slices.Equal(SlotsOf(l), Trivial(m.Slots, m.Experts)))
	})
	return layouts
}

// SlotsOf are the experts of a layout, rank by rank.
func SlotsOf(l router.Layout) (slots []int32) {
	for rank := range l.Ranks() {
		slots = append(slots, l.Held(rank)...)
	}
	return slots
}

// Trivial is expert i mod experts in slot i.
func Trivial(slots, experts int) []int32 {
	row := make([]int32, slots)
	for i := range row {
		row[i] = int32(i % experts)
	}
	return row
}
