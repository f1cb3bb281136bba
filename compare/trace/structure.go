package trace

import (
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/steps"
	"github.com/moebalance/moebalance/router"
)

// structure takes the layers that were inferred rank by rank where the ranks agree,
// and drops them where they do not: the blocks of two ranks with the same number
// would be of different steps.
func (r *reduction) structure() {
	at := slices.IndexFunc(r.ranks, func(p *rankEvents) bool { return p.Structure != nil })
	if at < 0 {
		r.layerSteps()
		return
	}
	first := r.ranks[at]
	if first.Structure.Beside {
		r.besideLayers(first)
		return
	}
	unknown := r.commonSteps()
	s := *first.Structure
	if r.trace.Structure = &s; r.staged {
		s.Layers, s.Stage = 0, ""
		for _, stage := range []string{"first", "last"} {
			at := slices.IndexFunc(r.ranks, func(p *rankEvents) bool { return p.Structure.Stage == stage })
			s.Layers += r.ranks[at].Structure.Layers
		}
	}
	for _, p := range r.ranks {
		if args := r.sameStage(p).differs(p); args != nil || unknown != nil {
			if args == nil {
				args = unknown
			}
			r.unknownLayers(s, "ranks_differ", args...)
			return
		}
		s.Share = min(s.Share, p.Structure.Share)
	}
	if s.Layers > 0 && !r.staged && steps.Twins(r.layerTimes(int(s.Layers))) {
		r.unknownLayers(s, "microbatches", "layers", int(s.Layers))
		return
	}
	if s.Layers > 0 {
		r.warn("inferred", "", "steps", int(s.Steps), "layers", int(s.Layers))
		return
	}
	if s.Unclear {
		r.warn("unclear_blocks", "", "reason", s.Unknown)
		return
	}
	r.warn("blocks", "", "reason", s.Unknown, "share", s.Share)
}

// sameStage is the first rank that is of the same stage of a pipeline.
func (r *reduction) sameStage(p *rankEvents) *rankEvents {
	at := slices.IndexFunc(r.ranks, func(o *rankEvents) bool {
		return o.Structure != nil && (!r.staged || o.Structure.Stage == p.Structure.Stage)
	})
	return r.ranks[at]
}

// besideLayers takes the layers that were inferred in steps beside those whose layers ranges
// name, where the ranks agree.
func (r *reduction) besideLayers(first *rankEvents) {
	for _, p := range r.ranks {
		if first.differs(p) != nil || !p.Structure.Beside {
			r.dropInferred()
			return
		}
	}
	s := *first.Structure
	for _, p := range r.ranks {
		s.Share = min(s.Share, p.Structure.Share)
	}
	r.trace.Structure = &s
	r.warn("inferred_beside", "", "steps", int(s.Steps), "layers", int(s.Layers))
}

// inferred reports whether layers are inferred in any of some steps.
func (r *reduction) inferred(steps []int) bool {
	for _, d := range r.exports {
		for i := range d.Places {
			if l := &d.Places[i]; l.Inferred&ranges.InferredLayer > 0 && slices.Contains(steps, int(l.Step)) {
				return true
			}
		}
	}
	return r.trace.Structure != nil && !r.trace.Structure.Beside
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
		for g := range p.groups() {
			if g.at.Inferred&ranges.InferredLayer > 0 && g.at.Step != NoID && g.at.Layer < int32(layers) && g.class.GEMM {
				times[rank][g.at.Layer] += float64(g.ns)
			}
		}
	}
	return times
}

// stepSpans are the steps of a rank, in order.
func (p *rankEvents) stepSpans() (spans []steps.Span) {
	for i := range p.events {
		e := &p.events[i]
		l, from := &p.of.Places[e.location], p.of.Session+e.start
		if l.Inferred&ranges.InferredLayer == 0 || l.Step == NoID {
			continue
		}
		if n := len(spans); n == 0 || spans[n-1].Step < l.Step {
			spans = append(spans, steps.Span{Step: l.Step, From: from, To: from})
		}
		last := &spans[len(spans)-1]
		if last.To = from + e.duration; p.of.classes[e.name].Collective {
			last.Left = append(last.Left, last.To)
		}
	}
	return spans
}

// commonSteps keeps of the steps with inferred layers those that all ranks recorded whole,
// where some began later or ended earlier than others. It returns the arguments of a warning
// where nothing tells which are the same.
func (r *reduction) commonSteps() (unknown []any) {
	spans, shifts := make([][]steps.Span, len(r.ranks)), make([]int, len(r.ranks))
	first, from, to := r.ranks[0], 0, math.MaxInt // of the first rank's steps
	unsure := false
	for i, p := range r.ranks {
		if spans[i] = p.stepSpans(); p.Structure == nil || p.Structure.Layers != first.Structure.Layers ||
			len(spans[i]) != int(p.Structure.Steps) || len(spans[i]) == 0 {
			return nil
		}
		alike := p.Structure.Blocks == first.Structure.Blocks && len(spans[i]) == len(spans[0]) &&
			spans[i][0].Step == spans[0][0].Step
		j := steps.Join{Known: true, Sure: true}
		if i > 0 {
			clocks := p.of == first.of || p.of.Session > 0 && first.of.Session > 0
			j = steps.JoinOf(spans[0], spans[i], alike, clocks)
		}
		n := j.Shift
		if from, to = max(from, n), min(to, n+len(spans[i])); !j.Known || from >= to {
			return []any{"why", "when", "rank", first.Rank.Rank, "other", p.Rank.Rank}
		}
		shifts[i], unsure = n, unsure || !j.Sure
	}
	r.met = !unsure
	for i, p := range r.ranks {
		n, begin, number := int(p.Structure.Steps), spans[i][from-shifts[i]].Step, spans[0][from].Step
		if n > to-from {
			r.warn("uncommon_steps", p.Rank.Export, "rank", p.Rank.Rank, "steps", n, "common", to-from)
		}
		if n > to-from || begin != number { // as the first rank's, whose ranges name the steps
			p.keepSteps(begin, number, to-from)
		}
	}
	return nil
}

// keepSteps keeps n steps from a first one on, which get the numbers from another on.
func (p *rankEvents) keepSteps(first, number int32, n int) {
	p.Structure.Share *= float64(n) / float64(p.Structure.Steps)
	p.Structure.Steps = router.Stated(n)
	p.rows = nil
	to := map[int32]int32{}
	p.of.Places = slices.Clone(p.of.Places)
	for i := range p.events {
		at := &p.events[i].location
		if _, known := to[*at]; !known {
			l := p.of.Places[*at]
			if l.Step >= first && l.Step < first+int32(n) {
				l.Step += number - first
			} else if l.Step = NoID; l.Inferred&ranges.InferredLayer > 0 {
				l.Layer = NoID
			}
			to[*at] = int32(len(p.of.Places))
			p.of.Places = append(p.of.Places, l)
		}
		*at = to[*at]
	}
}

// layerSteps says that steps were inferred from the order of the layers, and drops them
// where ranks have different numbers of them.
func (r *reduction) layerSteps() {
	steps := make([]int, len(r.ranks))
	for i, p := range r.ranks {
		for g := range p.groups() {
			if g.at.Inferred&ranges.InferredStep > 0 {
				steps[i] = max(steps[i], int(g.at.Step)+1)
			}
		}
		if steps[i] != steps[0] {
			r.warn("ranks_differ", "", "why", "layer_steps", "rank", r.ranks[0].Rank.Rank, "own", steps[0], "other",
				p.Rank.Rank, "others", steps[i])
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
	a, b := p.Structure, o.Structure
	differ := func(why string, x, y int) []any {
		return []any{"why", why, "rank", p.Rank.Rank, "own", x, "other", o.Rank.Rank, "others", y}
	}
	switch {
	case b == nil:
		return []any{"why", "ranges", "rank", o.Rank.Rank, "other", p.Rank.Rank}
	case a.Layers != b.Layers:
		return differ("layers", int(a.Layers), int(b.Layers))
	case a.Stage != b.Stage:
		return []any{"why", "stages", "rank", p.Rank.Rank, "other", o.Rank.Rank}
	case a.Steps != b.Steps:
		return differ("steps", int(a.Steps), int(b.Steps))
	case a.Layers == 0 && a.Blocks != b.Blocks:
		return differ("blocks", a.Blocks, b.Blocks)
	}
	return nil
}

// dropInferred takes all inferred layers and steps back.
func (r *reduction) dropInferred() {
	for _, d := range r.exports {
		d.Places = slices.Clone(d.Places)
		for i := range d.Places {
			l := &d.Places[i]
			if l.Inferred&ranges.InferredLayer > 0 {
				l.Layer = NoID
			}
			if l.Inferred&ranges.InferredStep > 0 {
				l.Step = NoID
			}
			l.Inferred = 0
		}
	}
}
