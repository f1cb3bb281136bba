package trace

import (
	"slices"

	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/router"
)

// Attention is how uneven the work is that follows a rank's own tokens, attention and projections, where
// ranks hold different numbers of tokens: attention that is data-parallel over the expert-parallel ranks.
type Attention struct {
	Imbalance router.Number `json:"imbalance"` // Σ max / Σ mean − 1 over the steps that count
	// Tokens are the tokens of each rank, mean over these steps, none where no range tells them: then a rank
	// takes longer for dense GEMMs, and not for what runs between dispatch and combine.
	Tokens []float64 `json:"tokens"`
}

// asSlow is the least part of what a slower GPU takes longer for dense GEMMs that it takes longer for work on
// the tokens of all ranks, between dispatch and combine: a real one has 0.67 and more there, unequal
// tokens 0.01.
const asSlow = 1.0 / 3

// attention fills Attention, where ranks hold unequal tokens: by their number or, where that is not known, by the dense
// GEMMs that they pass.
func (r *reduction) attention() {
	if len(r.ranks) < 2 {
		return
	}
	tokens, known := make([]float64, len(r.ranks)), true // mean over steps, as ranges tell them
	for i, p := range r.ranks {
		for step := range r.counted {
			n := ranges.BatchOf(p.of.StepNames[int32(step)]).Tokens
			known = known && n > 0
			tokens[i] += float64(n)
		}
		tokens[i] /= float64(len(r.counted))
	}
	unequal, most := slices.Max(tokens) > (1+leastSlow)*slices.Min(tokens), router.Number(1)
	for _, s := range r.trace.Speeds {
		most = max(most, s.OverMean)
	}
	healthy := most > 1+leastSlow && !slices.ContainsFunc([]Phase{PhaseDispatch, PhaseExperts, PhaseCombine},
		func(p Phase) bool { return r.overRanks(p) > asSlow*(most-1) })
	switch {
	case !known:
		tokens, unequal = nil, healthy
	case healthy && !unequal: // no GPU is slower: dense GEMMs ran beside others' work, as collectives of microbatches
		r.trace.Speeds = nil
	}
	if unequal {
		r.trace.Attention = &Attention{Imbalance: r.overRanks(PhaseAttention, PhaseOther), Tokens: tokens}
	}
}

// overRanks is Σ max / Σ mean − 1 over ranks of the compute of phases in the steps that count, undefined
// without any.
func (r *reduction) overRanks(phases ...Phase) router.Number {
	type own struct {
		rank *rankEvents
		step int32
	}
	var most, all int64
	longest := map[int32]int64{}
	for at, s := range sums(r, func(g group) (own, bool) {
		return own{g.rank, g.at.Step}, r.counts(g.at.Step) && !g.class.Collective && slices.Contains(phases, g.at.Phase)
	}) {
		all += s.TotalNS
		longest[at.step] = max(longest[at.step], s.TotalNS)
	}
	for _, ns := range longest {
		most += ns
	}
	return router.Number(most*int64(len(r.ranks)))/router.Number(all) - 1
}

// leastTokens is the gain of even tokens from which it is told.
const leastTokens = 0.005

// UnevenAttention reports attention that is uneven over ranks, and from whose evenness more is to be gained
// than from even experts.
func (t *Trace) UnevenAttention() bool {
	if t.Attention == nil || t.Attention.Imbalance <= leastSlow {
		return false
	}
	if p := t.Replay(); p != nil && p.EvenTokens.Estimate.Defined() {
		return p.EvenTokens.Estimate > leastTokens && p.EvenTokens.Estimate > p.EvenRanks.Estimate
	}
	return true
}
