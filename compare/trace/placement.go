package trace

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/steps"
	"github.com/moebalance/moebalance/router"
)

// placement gives the kernels of one rank their step and MoE layer by position.
//
// A layer begins where the layer before ends. The first layer of a step begins as many kernels before its expert
// block as the second does: before it stand the embedding and dense layers. A layer ends with the first collective
// behind the block; without one, before the next attention or dense GEMM. What stands between its router, the first
// one after the attention, and the block is dispatch, inside the block experts, and behind it combine, unless other
// evidence knows better.
type placement struct {
	*rankEvents
	bare     map[int32]bool // steps in which no range names a layer, if the ranges of other steps name some; else nil
	named    []int32        // the layers that they name
	order    []int32        // events in order of launch; within a replayed graph, in order of start
	launches []steps.Launch
	found    steps.Structure
	steps    []int32 // by block
	layers   []int32
	ends     []int // last kernel of each block's layer
	scratch  location
}

// infer gives kernels what no range says: layers where expert GEMMs are in none, in all steps or in some. Steps are
// found over all ranks at once, see package steps.
func (r *reduction) infer() {
	list := make([]*placement, len(r.ranks))
	var wait sync.WaitGroup
	for i, p := range r.ranks {
		wait.Go(func() { list[i] = p.placement() })
	}
	wait.Wait()
	var found []*steps.Structure
	for _, p := range list {
		if p != nil && p.bare == nil {
			found = append(found, &p.found)
		}
	}
	if len(found) == len(list) {
		steps.Together(found)
	}
	for _, p := range list {
		if p != nil && p.findLayers() {
			p.placeBlocks()
		}
	}
}

// placement prepares a rank; nil where ranges say all.
func (p *rankEvents) placement() *placement {
	n := &placement{rankEvents: p}
	bare, named, layered := map[int32]bool{}, map[int32]bool{}, map[int32]bool{}
	for e, at := range p.each() {
		c := p.class(e)
		layered[at.Step] = layered[at.Step] || at.Layer != NoID
		if c.GEMM || c.FusedExperts() {
			bare[at.Step], named[at.Layer] = true, true
		}
	}
	delete(named, NoID)
	maps.DeleteFunc(bare, func(step int32, _ bool) bool { return len(named) > 0 && (step == NoID || layered[step]) })
	if len(bare) == 0 && len(named) > 0 {
		return nil
	}
	n.order = make([]int32, 0, len(p.events))
	for i := range p.events {
		if len(named) == 0 || bare[p.place(&p.events[i]).Step] {
			n.order = append(n.order, int32(i))
		}
	}
	if n.named = slices.Sorted(maps.Keys(named)); len(named) > 0 {
		n.bare = bare
	}
	recorded := slices.IndexFunc(p.events, func(e event) bool { return e.Queued >= 0 })
	from, _ := slices.BinarySearch(n.order, int32(recorded)) // what ran before was launched before the recording began
	// Kernels of a stream start in the order of their launches.
	launched, last := make([]int64, len(p.events)), map[uint16]int64{}
	for i := range p.events {
		e := &p.events[i]
		launched[i] = e.launched()
		if before, some := last[e.Stream]; some && e.Queued < 0 {
			launched[i] = before
		}
		last[e.Stream] = launched[i]
	}
	slices.SortFunc(n.order[from:], func(x, y int32) int {
		return cmp.Or(cmp.Compare(launched[x], launched[y]), cmp.Compare(x, y))
	})
	n.launches = make([]steps.Launch, len(n.order))
	for i := range n.order {
		l, e := &n.launches[i], n.event(i)
		*l = p.class(e).Launch
		l.Name, l.NS, l.Stream = p.of.common[e.Name], uint32(min(e.NS, math.MaxUint32)), e.Stream
		if l.Anchor == steps.None && p.place(e).Phase == PhaseOther {
			l.Anchor = steps.Dense
		}
	}
	order, streams := steps.SideBySide(n.launches)
	if p.streams = streams; order != nil {
		events, launches := slices.Clone(n.order), slices.Clone(n.launches)
		for i, at := range order {
			n.order[i], n.launches[i] = events[at], launches[at]
		}
	}
	n.found = steps.Find(n.launches)
	return n
}

func (p *placement) event(i int) *event { return &p.events[p.order[i]] }

// findLayers gives blocks their steps and layers: in the steps that ranges name where these have the same number of
// blocks, which is then the number of layers, else in the complete steps that the repetition shows. Where ranges name
// the layers of other steps, as beside replays of graphs, the numbers of layers must agree.
func (p *placement) findLayers() (found bool) {
	blocks := p.found.Blocks
	if len(blocks) == 0 {
		return false
	}
	p.steps = make([]int32, len(blocks))
	for b, block := range blocks {
		p.steps[b] = p.place(p.event(block.First)).Step
	}
	s, n := &Structure{Blocks: len(blocks), Beside: p.bare != nil, stage: p.found.Stage}, 0
	p.layers, n = p.found.LayersOfSteps(p.steps)
	if s.Layers = router.Stated(n); s.Beside && n != len(p.named) {
		return false
	}
	if n == 0 {
		p.renumber()
		s.Layers, s.Unknown, s.Unclear = router.Stated(p.found.Layers), p.found.Unknown, p.found.Unclear
		p.layers = make([]int32, len(blocks))
		for b := range blocks {
			step, layer := p.found.Place(b)
			p.steps[b], p.layers[b] = int32(step), int32(layer)
		}
	}
	for b, layer := range p.layers {
		switch {
		case s.Layers == 0:
			p.steps[b], p.layers[b] = NoID, int32(b)
		case p.steps[b] != NoID && (b == 0 || p.steps[b] != p.steps[b-1]):
			s.Steps++
		}
		if s.Beside && layer != NoID {
			p.layers[b] = p.named[layer]
		}
	}
	p.structure = s
	return true
}

// renumber gives the steps of ranges, which name only some, their numbers among all that repetition shows: the passes
// of a data-parallel rank for the tokens of others may have none. Where ranges are of other steps, they stay; so do
// they in an export of several ranks, which have one list of names.
func (p *placement) renumber() {
	number, names := map[int32]int32{}, map[int32]string{}
	for b, old := range p.steps {
		at, _ := p.found.Place(b)
		now, known := number[old]
		if number[old] = int32(at); old != NoID && known && now != int32(at) {
			return
		}
	}
	if _, some := number[NoID]; !some || len(number) == 1 || p.found.Layers == 0 || len(p.of.Ranks) > 1 {
		return
	}
	delete(number, NoID)
	for old, now := range number {
		names[now] = p.of.StepNames[old]
	}
	if len(names) < len(number) { // pieces of steps
		return
	}
	p.of.StepNames = names
	for e, at := range p.each() {
		if l := *at; l.Step != NoID {
			now, known := number[l.Step]
			if l.Step = now; !known {
				l.Step = NoID
			}
			e.Place = p.of.Places.Number(l)
		}
	}
}

// beginOf is the first kernel of a block's layer, given the first of its routing.
func (p *placement) beginOf(b, routing int) int {
	blocks := p.found.Blocks
	switch {
	case b > 0 && p.steps[b] == p.steps[b-1]:
		return p.ends[b-1] + 1
	case b+1 < len(blocks) && p.steps[b] == p.steps[b+1]:
		return max(0, min(routing, blocks[b].First-(blocks[b+1].First-p.ends[b]-1)))
	}
	return routing
}

// mostBlocks is how many blocks are numbered where layers are unknown: more than any model has layers. Nobody reads
// ten thousand rows.
const mostBlocks = 256

// placeBlocks gives the kernels of every block, and those around it, their locations.
func (p *placement) placeBlocks() {
	p.ends = p.found.Ends(p.launches)
	done := 0      // the first kernel that belongs to no block before
	tail := 0      // how many kernels from there on still end the step of the block before
	ended := false // whether any step had such kernels
	for b, block := range p.found.Blocks {
		routing, routed := p.routerOf(done, block.First)
		begin, layer := p.beginOf(b, routing), p.layers[b]
		first, last := p.event(block.First), p.event(max(block.First, block.Last))
		replayed := first != last && first.Replayed && last.Replayed && first.launched() == last.launched()
		for i := done; i <= p.ends[b]; i++ {
			step := p.steps[b]
			if i < done+tail {
				step = p.steps[b-1]
			}
			p.change(i, step, func(l *location, c *kernel.Class) {
				if c.GEMM && p.launches[i].Anchor != steps.ExpertGEMM { // of shared experts
					l.Phase = PhaseOther
				}
				if i < begin || layer == NoID {
					if i < routing && l.Phase == PhaseUnknown && c.Library == kernel.Quantizing { // of dense layers
						l.Phase = PhaseOther
					}
					return
				}
				if layer < mostBlocks {
					l.Layer, l.Inferred = layer, l.Inferred|ranges.InferredLayer
				}
				l.Graph = replayed && p.launches[i].Anchor == steps.ExpertGEMM
				phase := positionOf(i, routing, routed, block)
				if l.Phase == PhaseUnknown ||
					l.Phase == PhaseCommunication && (phase == PhaseDispatch || phase == PhaseCombine) {
					l.Phase = phase
				}
			})
		}
		done, tail = p.ends[b]+1, 0
		if b+1 < len(p.steps) && p.steps[b] != p.steps[b+1] {
			tail = p.found.Tail(p.launches, p.ends, b)
			ended = ended || tail > 0
		}
	}
	for i := done; ended && i < len(p.order); i++ {
		p.change(i, p.steps[len(p.steps)-1], func(*location, *kernel.Class) {})
	}
}

// change gives a kernel another location, and a step where no range does.
func (p *placement) change(i int, step int32, change func(*location, *kernel.Class)) {
	e, l := p.event(i), &p.scratch
	*l = *p.place(e)
	if l.Step == NoID && step != NoID {
		l.Step, l.Inferred = step, l.Inferred|ranges.InferredStep
	}
	change(l, p.class(e))
	e.Place = p.of.Places.Number(*l)
}

// positionOf is the phase of a kernel by its position in a layer: before the routing, no expert block holds it.
func positionOf(i, routing, routed int, block steps.Block) Phase {
	switch {
	case i < routing:
		return PhaseOther
	case i <= routed:
		return PhaseRouter
	case i < block.First:
		return PhaseDispatch
	case i > block.Last:
		return PhaseCombine
	}
	return PhaseExperts
}

// routerOf is where a layer's routing begins, with what nothing names before its first kernel, and its last router
// kernel.
func (p *placement) routerOf(from, first int) (begin, routed int) {
	begin, routed = first, -1
	for i := first - 1; i >= from && p.launches[i].Anchor != steps.Attention; i-- {
		switch {
		case p.launches[i].Anchor == steps.Router:
			if begin = i; routed < 0 {
				routed = i
			}
		case routed < 0 && p.place(p.event(i)).Phase == PhaseDispatch,
			begin == i+1 && routed >= 0 && p.launches[i].Anchor == steps.None && // of the gate, or of the switch
				p.place(p.event(i)).Phase == PhaseUnknown && p.class(p.event(i)).Library != kernel.Quantizing:
			begin = i
		}
	}
	return begin, routed
}
