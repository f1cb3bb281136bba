package nsys

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/nsys/infer"
	"github.com/moebalance/moebalance/compare/nsys/ranges"
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
	r.commonSteps()
	s := *first.structure
	r.trace.Structure = &s
	for _, p := range r.ranks {
		if args := first.differs(p); args != nil {
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

// stepSpans are those of a rank, in order; nil where its time is not known.
func (p *rankEvents) stepSpans() (spans []stepSpan) {
	for i := range p.events {
		e := &p.events[i]
		l, from := &p.of.locations[e.location], p.of.session+e.start
		if l.Inferred&ranges.InferredLayer == 0 || l.Step == None || p.of.session == 0 {
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
// where some began later or ended earlier than others and the times tell which are the same.
func (r *reduction) commonSteps() {
	spans := make([][]stepSpan, len(r.ranks))
	for i, p := range r.ranks {
		if spans[i] = p.stepSpans(); p.structure == nil || p.structure.Layers != r.ranks[0].structure.Layers ||
			len(spans[i]) != p.structure.Steps || len(spans[i]) == 0 {
			return
		}
	}
	few := slices.MinFunc(spans, func(a, b []stepSpan) int { return cmp.Compare(len(a), len(b)) })
	if !slices.ContainsFunc(spans, func(own []stepSpan) bool { return len(own) > len(few) }) {
		return
	}
	begins := make([]int, len(r.ranks)) // the step of each that is the first of the fewest
	for i, own := range spans {
		begins[i] = slices.IndexFunc(own,
			func(s stepSpan) bool { return min(s.to, few[0].to)-max(s.from, few[0].from) > (s.to-s.from)/2 })
		if begins[i] < 0 || begins[i]+len(few) > len(own) {
			return
		}
	}
	for i, p := range r.ranks {
		if n := len(spans[i]); n > len(few) {
			r.warn("uncommon_steps", p.rank.Export, "rank", p.rank.Rank, "steps", n, "common", len(few))
		}
		// as the first rank's, whose ranges name the steps
		p.keepSteps(spans[i][begins[i]].step, spans[0][begins[0]].step, len(few))
	}
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
