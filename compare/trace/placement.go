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
// A layer begins where the one before ends; the first of a step begins as many kernels
// before its expert block as the second, because the embedding and dense layers stand
// before it. It ends with the first collective behind the block;
// without one, before the next attention or dense GEMM. What stands between its router,
// the first one after the attention, and the block is dispatch, inside the block
// experts, and behind it combine, unless other evidence knows better.
type placement struct {
	*rankEvents
	bare     map[int32]bool // steps in which no range names a layer, if the ranges of other steps name some; else nil
	order    []int32        // events in order of launch; within a replayed graph, in order of start
	launches []steps.Launch
	found    steps.Structure
	steps    []int32 // by block
	layers   []int32
	ends     []int // last kernel of each block's layer
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
		if p != nil {
			p.inferLayers()
			p.rows = nil
		}
	}
}

// placement prepares a rank; nil where ranges say all.
func (p *rankEvents) placement() *placement {
	gemms, layered := map[int32]bool{}, map[int32]bool{} // steps that hold any, and whose layers ranges name
	placed := false
	for i := range p.events {
		e := &p.events[i]
		at, c := p.place(e), p.class(e)
		if at.Layer != NoID && !layered[at.Step] {
			layered[at.Step] = true
		}
		if c.GEMM || c.FusedExperts() {
			if placed = placed || at.Layer != NoID; !gemms[at.Step] {
				gemms[at.Step] = true
			}
		}
	}
	if placed {
		maps.DeleteFunc(gemms, func(step int32, _ bool) bool { return step == NoID || layered[step] })
	}
	if len(gemms) == 0 {
		return nil
	}
	n := &placement{rankEvents: p, order: p.launchOrder()}
	if placed {
		n.bare = gemms
		n.order = slices.DeleteFunc(n.order, func(i int32) bool { return !gemms[p.place(&p.events[i]).Step] })
	}
	n.readLaunches()
	n.found = steps.Find(n.launches)
	return n
}

// launchOrder are the numbers of a rank's kernels in the order in which they were launched.
func (p *rankEvents) launchOrder() []int32 {
	order := make([]int32, len(p.events))
	for i := range order {
		order[i] = int32(i)
	}
	byLaunch := func(x, y int32) int {
		return cmp.Or(cmp.Compare(p.events[x].launched(), p.events[y].launched()), cmp.Compare(x, y))
	}
	if !slices.IsSortedFunc(order, byLaunch) {
		slices.SortFunc(order, byLaunch)
	}
	return order
}

// readLaunches says of each launch what package steps looks at.
func (p *placement) readLaunches() {
	d := p.of
	of := make([]steps.Launch, len(d.classes)) // by name
	for i, c := range d.classes {
		of[i] = c.Launch(d.Names[i])
		of[i].Name = d.common[i]
	}
	p.launches = make([]steps.Launch, len(p.order))
	for i := range p.order {
		l, e := &p.launches[i], p.event(i)
		*l = of[e.Name]
		l.NS = uint32(min(e.NS, math.MaxUint32))
		if l.Anchor == steps.None && p.at(i).Phase == PhaseOther {
			l.Anchor = steps.Dense
		}
	}
}

func (p *placement) event(i int) *event    { return &p.events[p.order[i]] }
func (p *placement) at(i int) location     { return *p.place(p.event(i)) }
func (p *placement) put(i int, l location) { p.event(i).Place = p.of.number(l) }

// inferLayers places the kernels of a rank whose expert GEMMs are in no layer, or only GEMMs of the steps in which no
// range names a layer, as in replays of graphs, where ranges name the layers of other steps: if they have as many.
func (p *placement) inferLayers() {
	s := &Structure{Blocks: len(p.found.Blocks), Layers: router.Stated(p.stepsOfRanges()), Beside: p.bare != nil}
	named := p.namedLayers()
	switch {
	case s.Beside && (s.Layers == 0 || int(s.Layers) != len(named)):
		return
	case !s.Beside:
		if s.stage = p.found.Stage; s.Layers == 0 {
			s.Layers, s.Unknown, s.Unclear = router.Stated(p.found.Layers), p.found.Unknown, p.found.Unclear
			p.stepsOfPattern()
		}
	}
	for b, layer := range p.layers {
		switch {
		case s.Layers == 0:
			p.steps[b], p.layers[b] = NoID, int32(b)
		case layer == int32(s.Layers-1):
			s.Steps++ // complete ones by their last layers
		}
		if s.Beside && layer != NoID {
			p.layers[b] = named[layer]
		}
	}
	p.structure = s
	p.placeBlocks()
}

// namedLayers are the layers that ranges name, in steps with expert GEMMs that are not bare.
func (p *placement) namedLayers() []int32 {
	named := map[int32]bool{}
	for i := range p.events {
		if at := p.place(&p.events[i]); at.Layer != NoID && !p.bare[at.Step] && p.class(&p.events[i]).GEMM {
			named[at.Layer] = true
		}
	}
	return slices.Sorted(maps.Keys(named))
}

// stepsOfRanges takes the steps that ranges name where these have the same number of
// blocks, which is then the number of layers; 0 if they have not.
func (p *placement) stepsOfRanges() (layers int) {
	p.steps = make([]int32, len(p.found.Blocks))
	for b, block := range p.found.Blocks {
		p.steps[b] = p.at(block.First).Step
	}
	p.layers, layers = p.found.LayersOfSteps(p.steps)
	return layers
}

// stepsOfPattern takes the complete steps that the repetition shows.
func (p *placement) stepsOfPattern() {
	p.layers = make([]int32, len(p.steps))
	for b := range p.found.Blocks {
		step, layer := p.found.Place(b)
		if !p.found.Complete(step) {
			step, layer = NoID, NoID
		}
		p.steps[b], p.layers[b] = int32(step), int32(layer)
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

// placeBlocks gives the kernels of every block, and those around it, their locations.
func (p *placement) placeBlocks() {
	p.ends = p.found.Ends(p.launches)
	done := 0               // kernels up to here belong to blocks before
	tail, ended := 0, false // of these on, so many end the step of the block before
	for b, block := range p.found.Blocks {
		routing, routed := p.routerOf(done, block.First)
		begin := p.beginOf(b, routing)
		first, last := p.event(block.First), p.event(max(block.First, block.Last))
		replayed := first != last && first.Replayed && last.Replayed && first.launched() == last.launched()
		for i := done; i <= p.ends[b]; i++ {
			l := p.at(i)
			if i < done+tail {
				p.inStep(&l, p.steps[b-1])
			} else {
				p.inStep(&l, p.steps[b])
			}
			shared := p.launches[i].Anchor == steps.Dense && p.class(p.event(i)).GEMM
			if shared && l.Evidence >= ranges.ByOperator {
				l.Phase, l.Evidence = PhaseOther, ranges.ByPosition
			}
			if i >= begin && p.layers[b] != NoID {
				if p.layers[b] < mostBlocks {
					l.Layer, l.Inferred = p.layers[b], l.Inferred|ranges.InferredLayer
				}
				l.Graph = replayed && p.launches[i].Anchor == steps.ExpertGEMM
				if i >= routing {
					p.placePhase(&l, i, routed, block)
				} else if l.Phase == PhaseUnknown && p.class(p.event(i)).Library == kernel.Quantizing {
					l.Phase, l.Evidence = PhaseOther, ranges.ByPosition // it prepares what a dense GEMM reads
				}
			}
			p.put(i, l)
		}
		done, tail = p.ends[b]+1, 0
		if b+1 < len(p.steps) && p.steps[b] != p.steps[b+1] {
			tail = p.found.Tail(p.launches, p.ends, b)
			ended = ended || tail > 0
		}
	}
	for i := done; ended && i < len(p.order); i++ {
		l := p.at(i)
		p.inStep(&l, p.steps[len(p.steps)-1])
		p.put(i, l)
	}
}

// mostBlocks is how many blocks are numbered where layers are unknown, more than any model has: a row for
// each of ten thousand would tell nobody anything.
const mostBlocks = 256

// inStep gives a kernel a step where no range does.
func (p *placement) inStep(l *location, step int32) {
	if l.Step == NoID && step != NoID {
		l.Step, l.Inferred = step, l.Inferred|ranges.InferredStep
	}
}

// placePhase gives a kernel of a layer the phase of its position where nothing else
// gives it one; a collective is one of dispatch or combine.
func (p *placement) placePhase(l *location, i, routed int, block steps.Block) {
	if l.Phase != PhaseUnknown && l.Phase != PhaseCommunication {
		return
	}
	phase := PhaseExperts
	switch {
	case i <= routed:
		phase = PhaseRouter
	case i < block.First:
		phase = PhaseDispatch
	case i > block.Last:
		phase = PhaseCombine
	}
	if l.Phase == PhaseUnknown || phase == PhaseDispatch || phase == PhaseCombine {
		l.Phase, l.Evidence = phase, ranges.ByPosition
	}
}

// routerOf is where a layer begins, and its last router kernel.
func (p *placement) routerOf(from, first int) (begin, routed int) {
	begin, routed = first, -1
	for i := first - 1; i >= from && p.launches[i].Anchor != steps.Attention; i-- {
		switch {
		case p.launches[i].Anchor == steps.Router:
			if begin = i; routed < 0 {
				routed = i
			}
		case routed < 0 && p.at(i).Phase == PhaseDispatch:
			begin = i
		}
	}
	return begin, routed
}
