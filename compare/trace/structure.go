package trace

import (
	"math"
	"slices"

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
	Layers  router.Stated `json:"layers"`
	Steps   router.Stated `json:"steps"`   // complete ones
	Unknown string        `json:"unknown"` // why Layers is 0: a code
	// Unclear is set where blocks may be parts of layers, or hold more than routed experts.
	Unclear bool `json:"unclear,omitempty"`
	// Beside is set where ranges name the layers of other steps: if these have equally many blocks, they have the
	// same layers.
	Beside bool `json:"beside,omitempty"`

	stage string // of a pipeline: stages have layers of their own, and are not compared
}

// alike reports that two ranks have the same steps and layers, so that their times can be compared.
func (s *Structure) alike(o *Structure) bool {
	return o != nil && s.Layers == o.Layers && s.Steps == o.Steps && s.stage == o.stage && s.Beside == o.Beside &&
		(s.Layers > 0 || s.Blocks == o.Blocks)
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
		return unknown && p != first || !s.alike(p.structure)
	})
	drop := func(code string, args ...any) {
		r.warn(code, args...)
		r.dropInferred()
		s.Layers, s.Steps, s.Unknown = 0, 0, code
	}
	switch {
	case other >= 0 && s.Beside:
		r.trace.Structure = nil
		r.dropInferred()
	case other >= 0:
		p := r.ranks[other]
		args := []any{"rank", first.Rank.Rank, "other", p.Rank.Rank}
		if p.structure != nil && p.structure.stage != s.stage {
			args = append(args, "why", "stages")
		}
		drop(ranksDiffer, args...)
	case s.Beside:
		r.warn("inferred_beside", "steps", int(s.Steps), "layers", int(s.Layers))
	case s.Layers > 0 && steps.Twins(r.layerTimes(int(s.Layers))):
		drop(unclearBlocks, "why", "microbatches", "layers", int(s.Layers))
	case s.Layers > 0:
		r.warn("inferred", "steps", int(s.Steps), "layers", int(s.Layers))
	case s.Unclear:
		r.warn(unclearBlocks, "reason", s.Unknown)
	default:
		r.warn("blocks", "reason", s.Unknown)
	}
}

// inferred reports whether layers are inferred in any step that counts.
func (r *reduction) inferred() bool {
	return r.trace.Structure != nil && !r.trace.Structure.Beside ||
		slices.ContainsFunc(r.exports, func(d *exportSummary) bool {
			return slices.ContainsFunc(d.Places.Values, func(l location) bool {
				return l.Inferred&ranges.InferredLayer > 0 && r.counts(l.Step)
			})
		})
}

// layerTimes are the times of expert GEMMs in inferred steps, by rank and layer.
func (r *reduction) layerTimes(layers int) [][]float64 {
	times := make([][]float64, len(r.ranks))
	for rank, p := range r.ranks {
		times[rank] = make([]float64, layers)
		for e, at := range p.each() {
			if at.Inferred&ranges.InferredLayer > 0 && at.Step != NoID && int(at.Layer) < layers &&
				at.Phase == PhaseExperts && p.class(e).GEMM {
				times[rank][at.Layer] += float64(e.NS)
			}
		}
	}
	return times
}

// stepSpans are the steps of a rank, in order, with the collectives behind their first router: before it, layers of
// ranks that ran no experts may begin elsewhere.
func (p *rankEvents) stepSpans() (spans []steps.Span) {
	routed := false
	for e, l := range p.each() {
		if l.Inferred == 0 || l.Step == NoID {
			continue
		}
		from := int64(p.of.Export.CapturedNS) + e.Start
		if n := len(spans); n == 0 || spans[n-1].Step < l.Step {
			spans, routed = append(spans, steps.Span{Step: l.Step, From: from}), false
		}
		last := &spans[len(spans)-1]
		routed = routed || slices.Contains(kernel.Routed, l.Phase) && l.Layer != NoID
		if last.To = from + e.NS; routed && p.class(e).Collective && l.Inferred&ranges.InferredLayer > 0 {
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
			clocks := p.of == first.of || p.of.Export.CapturedNS > 0 && first.of.Export.CapturedNS > 0
			known := false
			if shifts[i], known = steps.JoinOf(spans[0], spans[i], alike, clocks); !known {
				return true
			}
		}
		if from, to = max(from, shifts[i]), min(to, shifts[i]+len(spans[i])); from >= to {
			return true
		}
	}
	for i, p := range r.ranks { // steps get the numbers of the first rank's, whose ranges name them
		p.keepSteps(spans[i][from-shifts[i]].Step, spans[0][from].Step, to-from)
	}
	return false
}

// keepSteps keeps n steps from a first one on, which get the numbers from another on: of steps 2 to 6, keeping 3 from
// 2 as 0 makes 2, 3 and 4 steps 0 to 2, and 5 and 6 none.
func (p *rankEvents) keepSteps(first, number int32, n int) {
	if int(p.structure.Steps) == n && first == number {
		return
	}
	p.structure.Steps = router.Stated(n)
	for e, at := range p.each() {
		l := *at
		if l.Step >= first && l.Step < first+int32(n) {
			l.Step += number - first
		} else if l.Step = NoID; l.Inferred&ranges.InferredLayer > 0 {
			l.Layer = NoID
		}
		e.Place = p.of.Places.Number(l)
	}
}

// dropInferred takes all inferred layers and steps back.
func (r *reduction) dropInferred() {
	r.relocate(func(l *location) {
		if l.Inferred&ranges.InferredLayer > 0 {
			l.Layer = NoID
		}
		if l.Inferred&ranges.InferredStep > 0 {
			l.Step = NoID
		}
		l.Inferred = 0
	})
}
