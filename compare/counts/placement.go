package counts

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

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
// of the model, or its MoE layers alone: moe, the model's MoE layers, tells which, or else
// the number of layers; where neither does, it is an error.
func (p *Placement) For(r *Record, moe []int) (*Placement, error) {
	layers, placed := r.Layers(), slices.Sorted(maps.Keys(p.layers))
	first := !slices.ContainsFunc(layers, func(l int) bool { return l >= len(layers) }) // they are 0, 1, …
	// and not behind the others, as layers of MTP are
	outside := func(l int) bool {
		return !slices.Contains(moe, l) && len(moe) > 0 && l < moe[len(moe)-1]
	}
	switch recordMoE := slices.ContainsFunc(layers, outside); {
	case p.layers == nil: // all layers share one layout
		return p, nil
	case moe != nil && recordMoE && len(layers) > 0 && slices.Max(layers) >= len(moe):
		return nil, fmt.Errorf("layer %d is none of the %s of the model", slices.Max(layers),
			quantity.Count(len(moe), "MoE layer"))
	case moe != nil && p.moeOnly && slices.Max(placed) >= len(moe):
		return nil, fmt.Errorf("the placement %q has MoE layer %d, the model %s", p.Source, slices.Max(placed),
			quantity.Count(len(moe), "MoE layer"))
	case moe != nil && p.moeOnly == recordMoE:
		return p, nil
	case moe != nil && p.moeOnly:
		return p.renumbered(func(l int) int { return moe[l] }), nil
	case moe != nil:
		return p.renumbered(func(l int) int { return slices.Index(moe, l) }), nil
	case len(layers) == len(placed) && (p.moeOnly || first):
		return p.renumbered(func(l int) int { return layers[slices.Index(placed, l)] }), nil
	case p.moeOnly && !first:
		return nil, fmt.Errorf("the placement %q numbers %s from 0, the counts are of layers %s: name the model, "+
			"by --model or --config", p.Source, quantity.Count(len(placed), "MoE layer"), quantity.Ranges(layers))
	case !p.moeOnly && first && p.beginsDense():
		return nil, fmt.Errorf("the placement %q begins with dense layers, the counts have load in layer 0, so "+
			"they number MoE layers alone: name the model, by --model or --config", p.Source)
	}
	return p, nil
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

// beginsDense reports whether layer 0, unlike others, has expert i mod experts in slot i, as
// SGLang's files have it for dense layers.
func (p *Placement) beginsDense() bool {
	first, ok := p.layers[0]
	return ok && p.trivial(first) && slices.ContainsFunc(slices.Collect(maps.Values(p.layers)),
		func(l router.Layout) bool { return !p.trivial(l) })
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

// Slots are the logical experts of the physical slots of each layer, equally many in
// every one, which fall to the ranks in equal consecutive runs.
type Slots map[int][]int32

// WriteTensorRT writes the slots as the configuration that TensorRT-LLM takes as
// moe_config.load_balancer, for a static placement. Layers are those of the model.
func (s Slots) WriteTensorRT(w io.Writer) error {
	layers, slots := s.size()
	var b strings.Builder
	fmt.Fprintf(&b, "num_slots: %d\ninitial_global_assignments:\n", slots)
	for _, layer := range layers {
		fmt.Fprintf(&b, "  %d: %s\n", layer, strings.ReplaceAll(fmt.Sprint(s[layer]), " ", ", "))
	}
	b.WriteString("layer_updates_per_iter: 0\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteSGLang writes the slots as SGLang takes them as --init-expert-location: one
// row for every layer of the model from 0 on. Layers without slots, which are dense,
// get the row that SGLang itself starts with: expert i mod experts in slot i.
func (s Slots) WriteSGLang(w io.Writer, experts int) error {
	layers, slots := s.size()
	rows := slices.Repeat([][]int32{trivial(slots, experts)}, layers[len(layers)-1]+1)
	for layer, row := range s {
		rows[layer] = row
	}
	return json.NewEncoder(w).Encode(map[string]any{"physical_to_logical_map": rows})
}

// WriteVLLM writes the slots as the initial mapping of vLLM's offline EPLB (pull
// request 41141). vLLM numbers the MoE layers alone, from 0 on: those of the model, or
// where it is not named (nil) those that have slots. Others get the row of WriteSGLang.
func (s Slots) WriteVLLM(w io.Writer, experts int, moe []int) error {
	layers, slots := s.size()
	if !slices.ContainsFunc(layers, func(l int) bool { return !slices.Contains(moe, l) }) {
		layers = moe
	}
	rows := map[int][]int32{}
	for i, layer := range layers {
		if rows[i] = s[layer]; rows[i] == nil {
			rows[i] = trivial(slots, experts)
		}
	}
	return json.NewEncoder(w).Encode(map[string]any{
		"record_type": "eplb_initial_mapping", "version": 1, "num_redundant_experts": slots - experts,
		"num_slots": slots, "initial_global_assignments": rows,
	})
}

func trivial(slots, experts int) []int32 {
	row := make([]int32, slots)
	for i := range row {
		row[i] = int32(i % experts)
	}
	return row
}

// size is the layers in order, and the slots of each.
func (s Slots) size() (layers []int, slots int) {
	layers = slices.Sorted(maps.Keys(s))
	return layers, len(s[layers[0]])
}
