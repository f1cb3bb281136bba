package trace

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/router"
)

// PerStep averages a trace over its steps, by rank, layer, phase and expert: the numbers that
// figures and the page show, which compute none themselves.
//
// Times are means over the steps that count (imbalance.New) unless a comment says
// otherwise, in nanoseconds. Load is the mean over the recorded steps, which need not
// be the trace's own, in slots. NaN is unknown, which is not zero: a rank without
// a kernel is unknown, not idle.
type PerStep struct {
	Ranks []int // that the trace names or has time of, ascending
	Times *imbalance.Times

	source *Trace
	at     map[int]int // ranks by number
}

// PerStep adds the cells up.
func (t *Trace) PerStep() *PerStep {
	p := &PerStep{Times: t.Times(nil), source: t, at: map[int]int{}}
	p.Ranks = slices.Clone(p.Times.Ranks)
	for _, r := range t.Ranks {
		p.Ranks = append(p.Ranks, r.Rank)
	}
	slices.Sort(p.Ranks)
	p.Ranks = slices.Compact(p.Ranks)
	for i, r := range p.Ranks {
		p.at[r] = i
	}
	return p
}

// Marked reports whether the capture marks steps; if not, all of it stands as one.
func (p *PerStep) Marked() bool { return !p.Times.Unmarked && len(p.Times.Steps) > 0 }

// unknowns is a list of n unknown values.
func unknowns(n int) []float64 { return slices.Repeat([]float64{math.NaN()}, n) }

// ExpertsByLayer is the time of each rank's expert kernels by layer; layers without any are missing.
func (p *PerStep) ExpertsByLayer() map[int][]float64 {
	byLayer := map[int][]float64{}
	for _, l := range p.Times.Judged() {
		times := unknowns(len(p.Ranks))
		for i, rank := range l.Ranks {
			sum := 0.0
			for _, step := range l.Experts {
				sum += step[i] / float64(len(l.Experts))
			}
			if sum > 0 {
				times[p.at[rank]] = sum
			}
		}
		if l.Number.Defined() && floats.Count(math.IsNaN, times) < len(times) {
			byLayer[int(l.Number)] = times
		}
	}
	return byLayer
}

// RankPhases is the time of one rank by phase. Work holds no time in collectives. Wait
// and transfer are the parts of a collective before and after its last rank arrived;
// both are unknown where the steps that count cannot be replayed.
type RankPhases struct {
	Work                        map[Phase]float64
	Collectives, Wait, Transfer float64
}

// Phases is the time of each rank by phase; nil work for a rank without any.
func (p *PerStep) Phases() []RankPhases {
	byRank := make([]RankPhases, len(p.Ranks))
	for i := range byRank {
		byRank[i] = RankPhases{nil, math.NaN(), math.NaN(), math.NaN()}
	}
	counted := map[router.OptInt]bool{}
	for _, s := range p.Times.StepsOf(imbalance.Counts) {
		counted[router.OptInt(s)] = true
	}
	n := float64(len(counted))
	for _, c := range p.source.Cells {
		r := &byRank[p.at[c.Rank]]
		if !counted[c.Step] {
			continue
		}
		if r.Work == nil {
			r.Work, r.Collectives = map[Phase]float64{}, 0
		}
		phase := c.Phase
		if !slices.Contains(kernel.Phases, phase) {
			phase = PhaseUnknown
		}
		r.Work[phase] += float64(c.TotalNS-c.CollectiveNS) / n
		r.Collectives += float64(c.CollectiveNS) / n
	}
	if replay := p.source.Replay(); replay != nil {
		for _, stay := range replay.Stays {
			if at, known := p.at[stay.Rank]; known && byRank[at].Work != nil {
				byRank[at].Wait, byRank[at].Transfer = stay.WaitNS.Float64(), stay.TransferNS.Float64()
			}
		}
	}
	return byRank
}

// ExpertMean is one expert on one rank. Its time is the mean over all steps.
type ExpertMean struct {
	Rank, Expert int
	Layer        router.OptInt
	TimeNS       float64
	Slots        float64
}

// Experts are the experts of the trace, in its order.
func (p *PerStep) Experts() []ExpertMean {
	steps := p.recordedSteps()
	experts := make([]ExpertMean, len(p.source.Experts))
	for i, e := range p.source.Experts {
		experts[i] = ExpertMean{e.Rank, e.Expert, e.Layer, float64(e.TotalNS) / float64(max(1, len(p.Times.Steps))), math.NaN()}
		if e.Known && steps[e.Layer] > 0 {
			experts[i].Slots = float64(e.Slots) / steps[e.Layer]
		}
	}
	return experts
}

// recordedSteps are the steps over which each layer's slots were counted. A layer is
// missing where no load is recorded.
func (p *PerStep) recordedSteps() map[router.OptInt]float64 {
	steps := map[router.OptInt]float64{}
	for _, s := range p.source.Imbalance {
		if s.Level == router.LevelExpert && s.Quantity == imbalance.Load {
			steps[s.Layer] = float64(s.Steps)
		}
	}
	return steps
}
