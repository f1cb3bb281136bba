package trace

import (
	"math"
	"slices"

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
	Layers  router.Stated `json:"layers"`
	Steps   router.Stated `json:"steps"`   // complete ones
	Unknown string        `json:"unknown"` // why Layers is 0: a code
	// Unclear is set where blocks may be parts of layers, or hold more than routed experts.
	Unclear bool `json:"unclear,omitempty"`
	// Beside is set where ranges name the layers of other steps, as many: these steps have
	// the same ones.
	Beside bool `json:"beside,omitempty"`
	// Counted are the numbers that recorded counts have for the layers, where others.
	Counted []int `json:"counted_layers,omitempty"`

	stage string // of a pipeline: stages have layers of their own, and are not compared
}

// shape is what ranks must have alike, or one cannot stand for the other.
type shape struct {
	layers, steps router.Stated
	blocks        int // where layers are unknown
	stage         string
	beside        bool
}

func (s *Structure) shape() shape {
	if s == nil {
		return shape{}
	}
	h := shape{layers: s.Layers, steps: s.Steps, stage: s.stage, beside: s.Beside}
	if s.Layers == 0 {
		h.blocks = s.Blocks
	}
	return h
}

// structure takes the layers that were inferred rank by rank where the ranks agree,
// and drops them where they do not: the blocks of two ranks with the same number
// would be of different steps.
func (r *reduction) structure() {
	at := slices.IndexFunc(r.ranks, func(p *rankEvents) bool { return p.structure != nil })
	if at < 0 {
		return
	}
	first := r.ranks[at]
	unknown := !first.structure.Beside && r.commonSteps()
	s := *first.structure
	r.trace.Structure = &s
	other := slices.IndexFunc(r.ranks, func(p *rankEvents) bool {
		return unknown && p != first || p.structure.shape() != s.shape()
	})
	switch {
	case other >= 0 && s.Beside:
		r.trace.Structure = nil
		r.dropInferred()
	case other >= 0:
		r.unknownLayers(ranksDiffer, "rank", first.Rank.Rank, "other", r.ranks[other].Rank.Rank)
	case s.Beside:
		r.warn("inferred_beside", "", "steps", int(s.Steps), "layers", int(s.Layers))
	case s.Layers > 0 && steps.Twins(r.layerTimes(int(s.Layers))):
		r.unknownLayers(unclearBlocks, "why", "microbatches", "layers", int(s.Layers))
	case s.Layers > 0:
		r.warn("inferred", "", "steps", int(s.Steps), "layers", int(s.Layers))
	case s.Unclear:
		r.warn(unclearBlocks, "", "reason", s.Unknown)
	default:
		r.warn("blocks", "", "reason", s.Unknown)
	}
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
func (r *reduction) unknownLayers(code string, args ...any) {
	r.warn(code, "", args...)
	r.dropInferred()
	s := r.trace.Structure
	s.Layers, s.Steps, s.Unknown = 0, 0, code
}

// layerTimes are the times of expert GEMMs in inferred steps, by rank and layer.
func (r *reduction) layerTimes(layers int) [][]float64 {
	type place struct {
		rank  *rankEvents
		layer int32
	}
	gemms := sums(r, func(g group) (place, bool) {
		return place{g.rank, g.at.Layer}, g.at.Inferred&ranges.InferredLayer > 0 && g.at.Step != NoID && g.class.GEMM
	})
	times := make([][]float64, len(r.ranks))
	for rank, p := range r.ranks {
		for layer := range int32(layers) {
			times[rank] = append(times[rank], float64(gemms[place{p, layer}].ns))
		}
	}
	return times
}

// stepSpans are the steps of a rank, in order.
func (p *rankEvents) stepSpans() (spans []steps.Span) {
	for i := range p.events {
		e := &p.events[i]
		l, from := p.place(e), p.of.Session+e.Start
		if l.Inferred&ranges.InferredLayer == 0 || l.Step == NoID {
			continue
		}
		if n := len(spans); n == 0 || spans[n-1].Step < l.Step {
			spans = append(spans, steps.Span{Step: l.Step, From: from, To: from})
		}
		last := &spans[len(spans)-1]
		if last.To = from + e.NS; p.class(e).Collective {
			last.Left = append(last.Left, last.To)
		}
	}
	return spans
}

// commonSteps keeps of the steps with inferred layers those that all ranks recorded whole,
// where some began later or ended earlier than others. It reports that nothing tells which are the same.
func (r *reduction) commonSteps() (unknown bool) {
	spans, shifts := make([][]steps.Span, len(r.ranks)), make([]int, len(r.ranks))
	first, from, to := r.ranks[0], 0, math.MaxInt // of the first rank's steps
	for i, p := range r.ranks {
		if spans[i] = p.stepSpans(); p.structure == nil || p.structure.Layers != first.structure.Layers ||
			len(spans[i]) != int(p.structure.Steps) || len(spans[i]) == 0 {
			return false
		}
		if i > 0 {
			alike := p.structure.Blocks == first.structure.Blocks && len(spans[i]) == len(spans[0]) &&
				spans[i][0].Step == spans[0][0].Step
			clocks := p.of == first.of || p.of.Session > 0 && first.of.Session > 0
			known := false
			if shifts[i], known = steps.JoinOf(spans[0], spans[i], alike, clocks); !known {
				return true
			}
		}
		if from, to = max(from, shifts[i]), min(to, shifts[i]+len(spans[i])); from >= to {
			return true
		}
	}
	for i, p := range r.ranks {
		begin, number := spans[i][from-shifts[i]].Step, spans[0][from].Step
		if int(p.structure.Steps) > to-from || begin != number { // as the first rank's, whose ranges name the steps
			p.keepSteps(begin, number, to-from)
		}
	}
	return false
}

// keepSteps keeps n steps from a first one on, which get the numbers from another on: of steps 2 to 6, keeping 3 from
// 2 as 0 makes 2, 3 and 4 steps 0 to 2, and 5 and 6 none.
func (p *rankEvents) keepSteps(first, number int32, n int) {
	p.structure.Steps = router.Stated(n)
	p.rows = nil
	for i := range p.events {
		e := &p.events[i]
		l := *p.place(e)
		if l.Step >= first && l.Step < first+int32(n) {
			l.Step += number - first
		} else if l.Step = NoID; l.Inferred&ranges.InferredLayer > 0 {
			l.Layer = NoID
		}
		e.Place = p.of.number(l)
	}
}

// dropInferred takes all inferred layers and steps back.
func (r *reduction) dropInferred() {
	for _, d := range r.exports {
		d.at = nil
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
