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

// Structure is how the kernels of a rank repeat, where no range names the layers of
// its expert GEMMs. Package steps says how it is found and when that fails.
type Structure struct {
	Blocks int `json:"blocks"` // runs of expert GEMMs: one MoE layer of one step each
	// Layers is the number of MoE layers per step, 0 where unknown: blocks are then
	// numbered in order of launch, and take the place of layers. Dense layers are not
	// counted.
	Layers router.Stated `json:"layers"`
	Steps  router.Stated `json:"steps"` // complete ones
	// Share is the part of the GPU time that lies in complete steps, from the router
	// of a step's first layer to the first layer of the next step.
	Share   float64 `json:"share"`
	Unknown string  `json:"unknown"` // why Layers is 0: a code
	// Unclear is set where blocks may be parts of layers, or hold more than routed experts.
	Unclear bool `json:"unclear,omitempty"`
	// Stage is the one of a pipeline that ran: "first", "middle" or "last"; empty where no
	// transfer between stages shows it.
	Stage string `json:"stage,omitempty"`
	// Beside is set where ranges name the layers of other steps, as many: these steps have
	// the same ones.
	Beside bool `json:"beside,omitempty"`
	// Counted are the numbers that recorded counts have for the layers, where others.
	Counted []int `json:"counted_layers,omitempty"`
}

// leastShare is the share of GPU time that complete steps must explain: a cut prefill may
// take most of it, but not nearly all.
const leastShare = 0.1

// placement gives the kernels of one rank their step and MoE layer by position.
//
// A layer begins where the one before ends; the first of a step begins as many kernels
// before its expert block as the second, because the embedding and dense layers stand
// before it. It ends with the first collective behind the block;
// without one, before the next attention or dense GEMM. What stands between its router,
// the first one after the attention, and the block is dispatch, inside the block
// experts, and behind it combine, unless other evidence knows better.
type placement struct {
	r        *rankEvents
	places   *places
	finish   func(*placement) // places the kernels
	bare     map[int32]bool   // steps in which no range names a layer, of inferBeside
	order    []int32          // events in order of launch; within a replayed graph, in order of start
	launches []steps.Launch
	found    steps.Structure
	steps    []int32 // by block
	layers   []int32
	behind   int32 // layers of the pipeline's stages before
	ends     []int // last kernel of each block's layer
}

// places are the locations of an export, to which placements add.
type places struct {
	of *exportSummary
	at map[location]int32
}

func (p *places) number(l location) int32 {
	n, known := p.at[l]
	if !known {
		n = int32(len(p.of.Places))
		p.of.Places = append(p.of.Places, l)
		p.at[l] = n
	}
	return n
}

// infer gives kernels what no range says: layers where expert GEMMs are in none, in all steps or in some, and
// steps where ranges name layers only. Steps are found over all ranks at once, see package steps.
func (r *reduction) infer() {
	list := make([]*placement, len(r.ranks))
	var wait sync.WaitGroup
	for i, p := range r.ranks {
		wait.Go(func() { list[i] = p.placement(r.nameOf[p.of]) })
	}
	wait.Wait()
	var found []*steps.Structure
	for _, p := range list {
		if p != nil && len(p.launches) > 0 && p.bare == nil {
			found = append(found, &p.found)
		}
	}
	if len(found) == len(list) {
		steps.Together(found)
		r.stages(list)
	}
	for _, d := range r.exports {
		own := &places{of: d}
		for i, p := range r.ranks {
			if p.of != d || list[i] == nil {
				continue
			}
			if own.at == nil {
				d.Places, own.at = slices.Clone(d.Places), map[location]int32{}
				for n, l := range d.Places {
					own.at[l] = int32(n)
				}
			}
			list[i].places = own
			list[i].finish(list[i])
			p.rows = nil
		}
	}
}

// stages numbers the layers of a pipeline's last stage behind those of its first, where ranks are of both. Which
// of several middle stages comes first is not known.
func (r *reduction) stages(list []*placement) {
	layers := map[string]int{}
	for _, p := range list {
		if n, seen := layers[p.found.Stage]; p.found.Layers == 0 || seen && n != p.found.Layers {
			return
		}
		layers[p.found.Stage] = p.found.Layers
	}
	if len(layers) != 2 || layers["first"] == 0 || layers["last"] == 0 {
		return
	}
	r.staged = true
	for _, p := range list {
		if p.found.Stage == "last" {
			p.behind = int32(layers["first"])
		}
	}
}

// placement prepares a rank; nil where ranges say all. Names are the numbers of its kernels' names.
func (p *rankEvents) placement(names []int32) *placement {
	d := p.of
	if !slices.ContainsFunc(d.classes, func(c kernel.Class) bool { return c.GEMM || c.Collective }) &&
		slices.ContainsFunc(d.Places, func(l location) bool { return l.Step != NoID }) {
		return nil
	}
	gemms, layered := map[int32]bool{}, map[int32]bool{} // by step
	placed := false
	for i := range p.events {
		e := &p.events[i]
		at := &d.Places[e.location]
		if at.Layer != NoID && !layered[at.Step] {
			layered[at.Step] = true
		}
		if c := &d.classes[e.name]; c.GEMM || c.FusedExperts() {
			if placed = placed || at.Layer != NoID; !gemms[at.Step] {
				gemms[at.Step] = true
			}
		}
	}
	stepped := len(layered) > 1 || len(layered) == 1 && !layered[NoID]
	n := &placement{r: p}
	switch {
	case len(gemms) > 0 && !placed:
		n.finish, n.order = (*placement).inferLayers, p.launchOrder()
	case len(layered) > 0 && !stepped:
		n.finish, n.order = (*placement).stepsOfLayers, p.launchOrder()
		return n
	default:
		maps.DeleteFunc(gemms, func(step int32, _ bool) bool { return step == NoID || layered[step] })
		if !placed || len(gemms) == 0 {
			return nil
		}
		n.finish, n.bare = (*placement).inferBeside, gemms
		n.order = slices.DeleteFunc(p.launchOrder(), func(i int32) bool { return !gemms[d.Places[p.events[i].location].Step] })
	}
	n.readLaunches(names)
	n.found = steps.Find(n.launches)
	return n
}

// inferBeside places the kernels of steps in which no range names a layer, as in replays of
// graphs, where ranges name those of other steps: if they have as many.
func (p *placement) inferBeside() {
	seen := map[int32]bool{}
	for i := range p.r.events {
		e := &p.r.events[i]
		if at := &p.r.of.Places[e.location]; !p.bare[at.Step] && at.Layer != NoID && p.r.of.classes[e.name].GEMM {
			seen[at.Layer] = true
		}
	}
	if n := p.stepsOfRanges(); n == 0 || n != len(seen) {
		return
	}
	s := &Structure{Blocks: len(p.found.Blocks), Layers: router.Stated(len(seen)), Beside: true}
	s.Steps, s.Share = p.explained(s.Layers)
	layers := slices.Sorted(maps.Keys(seen))
	for b, layer := range p.layers {
		if layer != NoID {
			p.layers[b] = layers[layer]
		}
	}
	p.r.Structure = s
	p.place()
}

// inferLayers places the kernels of a rank whose expert GEMMs are in no layer.
func (p *placement) inferLayers() {
	s := &Structure{Blocks: len(p.found.Blocks), Layers: router.Stated(p.found.Layers), Unknown: p.found.Unknown,
		Unclear: p.found.Unclear, Stage: p.found.Stage}
	p.r.Structure = s
	if n := p.stepsOfRanges(); n > 0 {
		s.Layers, s.Unknown, s.Unclear = router.Stated(n), "", false
	} else {
		p.stepsOfPattern()
	}
	if s.Layers > 0 {
		s.Steps, s.Share = p.explained(s.Layers)
		if s.Share < leastShare {
			s.Layers, s.Steps, s.Unknown = 0, 0, "little_in_steps"
		}
	}
	if s.Layers == 0 {
		for b := range p.found.Blocks {
			p.steps[b], p.layers[b] = NoID, int32(b)
		}
	}
	p.place()
}

// stepsOfLayers gives the kernels of one rank steps, where ranges name layers and no
// step.
func (p *placement) stepsOfLayers() {
	layers := make([]int32, len(p.order))
	for i := range layers {
		layers[i] = p.at(i).Layer
	}
	for i, step := range steps.StepsOfLayers(layers) {
		if step >= 0 {
			l := p.at(i)
			l.Step, l.Inferred = step, l.Inferred|ranges.InferredStep
			p.put(i, l)
		}
	}
}

// launched is when a kernel was launched, as far as that is recorded.
func (e *kernelEvent) launched() int64 { return e.start - max(0, int64(e.queued)) }

// launchOrder are the numbers of a rank's kernels in the order in which they were launched.
func (p *rankEvents) launchOrder() []int32 {
	order := make([]int32, len(p.events))
	for i := range order {
		order[i] = int32(i)
	}
	byLaunch := func(x, y int32) int {
		a, b := &p.events[x], &p.events[y]
		return cmp.Or(cmp.Compare(a.launched(), b.launched()), cmp.Compare(x, y))
	}
	if !slices.IsSortedFunc(order, byLaunch) {
		slices.SortFunc(order, byLaunch)
	}
	return order
}

// readLaunches says of each launch what package steps looks at.
func (p *placement) readLaunches(names []int32) {
	d := p.r.of
	of := make([]steps.Launch, len(d.classes)) // by name
	for i, c := range d.classes {
		of[i] = c.Launch(d.Names[i])
		of[i].Name = names[i]
	}
	p.launches = make([]steps.Launch, len(p.order))
	for i := range p.order {
		e := p.event(i)
		p.launches[i] = of[e.name]
		p.launches[i].NS = uint32(min(e.duration, math.MaxUint32))
		if p.launches[i].Anchor == steps.None && p.at(i).Phase == PhaseOther {
			p.launches[i].Anchor = steps.Dense
		}
	}
}

func (p *placement) event(i int) *kernelEvent  { return &p.r.events[p.order[i]] }
func (p *placement) class(i int) *kernel.Class { return &p.r.of.classes[p.event(i).name] }
func (p *placement) at(i int) location         { return p.r.of.Places[p.event(i).location] }
func (p *placement) put(i int, l location)     { p.event(i).location = p.places.number(l) }

// stepsOfRanges takes the steps that ranges name where these have the same number of
// blocks, which is then that of the layers; 0 if they have not.
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

// explained is the number of complete steps and the share of the GPU time in them.
func (p *placement) explained(layers router.Stated) (steps router.Stated, share float64) {
	var inside, all int64
	block := 0
	for i := range p.r.events {
		all += p.r.events[i].duration
	}
	for i, at := range p.order {
		for block < len(p.found.Blocks) && p.found.Blocks[block].Last < i {
			block++
		}
		if block < len(p.layers) && p.layers[block] != NoID {
			inside += p.r.events[at].duration
		}
	}
	for _, l := range p.layers {
		if l == int32(layers-1) {
			steps++
		}
	}
	return steps, float64(inside) / float64(max(all, 1))
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

// place gives the kernels of every block, and those around it, their locations.
func (p *placement) place() {
	p.ends = p.found.Ends(p.launches)
	done := 0               // kernels up to here belong to blocks before
	tail, ended := 0, false // of these on, so many end the step of the block before
	for b, block := range p.found.Blocks {
		routing, routed := p.routerOf(done, block.First)
		begin := p.beginOf(b, routing)
		first, last := p.event(block.First), p.event(max(block.First, block.Last))
		replayed := first != last && first.replayed && last.replayed && first.launched() == last.launched()
		for i := done; i <= p.ends[b]; i++ {
			l := p.at(i)
			if i < done+tail {
				p.inStep(&l, p.steps[b-1])
			} else {
				p.inStep(&l, p.steps[b])
			}
			shared := p.launches[i].Anchor == steps.Dense && p.class(i).GEMM
			if shared && l.Evidence >= ranges.ByOperator {
				l.Phase, l.Evidence = PhaseOther, ranges.ByPosition
			}
			if i >= begin && p.layers[b] != NoID {
				if p.layers[b] < mostBlocks {
					l.Layer, l.Inferred = p.behind+p.layers[b], l.Inferred|ranges.InferredLayer
				}
				l.Graph = replayed && p.launches[i].Anchor == steps.ExpertGEMM
				if i >= routing {
					p.placePhase(&l, i, routed, block)
				} else if l.Phase == PhaseUnknown && p.class(i).Library == kernel.Quantizing {
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
