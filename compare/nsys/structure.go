package nsys

import (
	"cmp"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/nsys/infer"
	"github.com/moebalance/moebalance/compare/nsys/ranges"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// structure takes the layers that were inferred rank by rank where the ranks agree,
// and drops them where they do not: the blocks of two ranks with the same number
// would be of different steps.
func (r *reduction) structure() {
	at := slices.IndexFunc(r.ranks, func(p *rankEvents) bool { return p.structure != nil })
	if at < 0 {
		r.layerSteps()
		return
	}
	first := r.ranks[at]
	unknown := r.commonSteps()
	s := *first.structure
	r.trace.Structure = &s
	for _, p := range r.ranks {
		if args := first.differs(p); args != nil || unknown != nil {
			if args == nil {
				args = unknown
			}
			r.unknownLayers(s, "ranks_differ", args...)
			return
		}
		s.Share = min(s.Share, p.structure.Share)
	}
	if s.Layers > 0 && infer.Twins(r.layerTimes(s.Layers)) {
		r.unknownLayers(s, "microbatches", "layers", s.Layers)
		return
	}
	if s.Layers > 0 {
		r.warn("inferred", "", "steps", s.Steps, "layers", s.Layers)
		return
	}
	if s.Unclear {
		r.warn("unclear_blocks", "", "reason", s.Unknown)
		return
	}
	r.warn("blocks", "", "reason", s.Unknown)
}

// unknownLayers drops what was inferred.
func (r *reduction) unknownLayers(s Structure, code string, args ...any) {
	r.warn(code, "", args...)
	r.dropInferred()
	s.Layers, s.Steps, s.Unknown = 0, 0, code
	r.trace.Structure = &s
}

// layerTimes are the times of expert GEMMs in inferred steps, by rank and layer.
func (r *reduction) layerTimes(layers int) [][]float64 {
	times := make([][]float64, len(r.ranks))
	for rank, p := range r.ranks {
		times[rank] = make([]float64, layers)
		for i := range p.events {
			e := &p.events[i]
			at := &p.of.locations[e.location]
			if at.Inferred&ranges.InferredLayer > 0 && at.Step != None && at.Layer < int32(layers) &&
				p.of.classes[e.name].GEMM {
				times[rank][at.Layer] += float64(e.duration)
			}
		}
	}
	return times
}

// stepSpan is when a rank ran the inferred layers of a step.
type stepSpan struct {
	step     int32
	from, to int64
}

// stepSpans are those of a rank, in order.
func (p *rankEvents) stepSpans() (spans []stepSpan) {
	for i := range p.events {
		e := &p.events[i]
		l, from := &p.of.locations[e.location], p.of.session+e.start
		if l.Inferred&ranges.InferredLayer == 0 || l.Step == None {
			continue
		}
		if n := len(spans); n == 0 || spans[n-1].step < l.Step {
			spans = append(spans, stepSpan{l.Step, from, from})
		}
		spans[len(spans)-1].to = from + e.duration
	}
	return spans
}

// commonSteps keeps of the steps with inferred layers those that all ranks recorded whole,
// where some began later or ended earlier than others. It returns the arguments of a warning
// where nothing tells which are the same.
func (r *reduction) commonSteps() (unknown []any) {
	spans, shifts := make([][]stepSpan, len(r.ranks)), make([]int, len(r.ranks))
	first, from, to := r.ranks[0], 0, math.MaxInt // of the first rank's steps
	for i, p := range r.ranks {
		if spans[i] = p.stepSpans(); p.structure == nil || p.structure.Layers != first.structure.Layers ||
			len(spans[i]) != p.structure.Steps || len(spans[i]) == 0 {
			return nil
		}
		alike := p.structure.Blocks == first.structure.Blocks && len(spans[i]) == len(spans[0]) &&
			spans[i][0].step == spans[0][0].step
		n, ok := 0, alike
		if p.of == first.of || p.of.session > 0 && first.of.session > 0 {
			n, ok = shift(spans[0], spans[i], alike)
		}
		if from, to = max(from, n), min(to, n+len(spans[i])); !ok || from >= to {
			return []any{"why", "when", "rank", first.rank.Rank, "other", p.rank.Rank}
		}
		shifts[i] = n
	}
	for i, p := range r.ranks {
		n, begin, number := p.structure.Steps, spans[i][from-shifts[i]].step, spans[0][from].step
		if n > to-from {
			r.warn("uncommon_steps", p.rank.Export, "rank", p.rank.Rank, "steps", n, "common", to-from)
		}
		if n > to-from || begin != number { // as the first rank's, whose ranges name the steps
			p.keepSteps(begin, number, to-from)
		}
	}
	return nil
}

// shift is the number of the step of one rank that is the first of another, by the time of
// day. Ranks that recorded as many blocks from the same layer on recorded the same steps, as
// the clocks of two hosts differ, unless step by step they end unequally far apart: ranks
// leave collectives together.
func shift(a, b []stepSpan, alike bool) (n int, ok bool) {
	for j, s := range b {
		i := slices.IndexFunc(a, func(o stepSpan) bool { return 2*(min(s.to, o.to)-max(s.from, o.from)) > s.to-s.from })
		if n, ok = i-j, i >= 0; ok {
			break
		}
	}
	if alike && (!ok || n == 0 || unequally(a, b, 0) < unequally(a, b, n)/2) {
		return 0, true
	}
	shortest := slices.MinFunc(b, func(x, y stepSpan) int { return cmp.Compare(x.to-x.from, y.to-y.from) })
	if ends := apart(a, b, n); ok && floats.Max(ends)-floats.Min(ends) > float64(shortest.to-shortest.from) {
		return n, false // one lacks a step between
	}
	return n, ok && (!alike || unequally(a, b, n) < unequally(a, b, 0)/2)
}

// unequally is by how much the distance varies between the ends of a rank's steps and another's.
func unequally(a, b []stepSpan, shift int) float64 { return stat.StdDev(apart(a, b, shift), nil) }

// apart are these distances.
func apart(a, b []stepSpan, shift int) (ns []float64) {
	for j, s := range b {
		if i := j + shift; 0 <= i && i < len(a) {
			ns = append(ns, float64(a[i].to-s.to))
		}
	}
	return ns
}

// keepSteps keeps n steps from a first one on, which get the numbers from another on.
func (p *rankEvents) keepSteps(first, number int32, n int) {
	p.structure.Share *= float64(n) / float64(p.structure.Steps)
	p.structure.Steps = n
	to := map[int32]int32{}
	p.of.locations = slices.Clone(p.of.locations)
	for i := range p.events {
		at := &p.events[i].location
		if _, known := to[*at]; !known {
			l := p.of.locations[*at]
			if l.Step >= first && l.Step < first+int32(n) {
				l.Step += number - first
			} else if l.Step = None; l.Inferred&ranges.InferredLayer > 0 {
				l.Layer = None
			}
			to[*at] = int32(len(p.of.locations))
			p.of.locations = append(p.of.locations, l)
		}
		*at = to[*at]
	}
}

// layerSteps says that steps were inferred from the order of the layers, and drops them
// where ranks have different numbers of them.
func (r *reduction) layerSteps() {
	steps := make([]int, len(r.ranks))
	for i, p := range r.ranks {
		for j := range p.events {
			if at := &p.of.locations[p.events[j].location]; at.Inferred&ranges.InferredStep > 0 {
				steps[i] = max(steps[i], int(at.Step)+1)
			}
		}
		if steps[i] != steps[0] {
			r.warn("ranks_differ", "", "why", "layer_steps", "rank", r.ranks[0].rank.Rank, "own", steps[0], "other",
				p.rank.Rank, "others", steps[i])
			r.dropInferred()
			return
		}
	}
	if steps[0] > 0 {
		r.warn("inferred_steps", "", "steps", steps[0])
	}
}

// differs are the arguments of a warning on what the structures of two ranks differ in, none
// if they agree.
func (p *rankEvents) differs(o *rankEvents) []any {
	a, b := p.structure, o.structure
	differ := func(why string, x, y int) []any {
		return []any{"why", why, "rank", p.rank.Rank, "own", x, "other", o.rank.Rank, "others", y}
	}
	switch {
	case b == nil:
		return []any{"why", "ranges", "rank", o.rank.Rank, "other", p.rank.Rank}
	case a.Layers != b.Layers:
		return differ("layers", a.Layers, b.Layers)
	case a.Stage != b.Stage:
		return []any{"why", "stages", "rank", p.rank.Rank, "other", o.rank.Rank}
	case a.Steps != b.Steps:
		return differ("steps", a.Steps, b.Steps)
	case a.Layers == 0 && a.Blocks != b.Blocks:
		return differ("blocks", a.Blocks, b.Blocks)
	}
	return nil
}

// dropInferred takes all inferred layers and steps back.
func (r *reduction) dropInferred() {
	for _, d := range r.exports {
		d.locations = slices.Clone(d.locations)
		for i := range d.locations {
			l := &d.locations[i]
			if l.Inferred&ranges.InferredLayer > 0 {
				l.Layer = None
			}
			if l.Inferred&ranges.InferredStep > 0 {
				l.Step = None
			}
			l.Inferred = 0
		}
	}
}
