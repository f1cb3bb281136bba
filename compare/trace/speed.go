package trace

import (
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/steps"
	"github.com/moebalance/moebalance/router"
)

// Speed is how long a rank takes for the dense GEMMs that all ranks run alike, over the mean of
// the ranks: 1.24 on a GPU that a second stream shares. No load of experts changes it; where ranks
// hold tokens of their own, more tokens do.
type Speed struct {
	Rank     int           `json:"rank"`
	OverMean router.Number `json:"dense_over_mean"`
}

// leastDense is the share of the compute time that dense GEMMs must have to show a rank's speed.
const leastDense = 0.01

// speeds fills Speeds: over the steps that count, by the dense GEMMs, which every token passes, of a step and layer
// that every rank runs equally often. Empty for one rank, and where such GEMMs have too little time.
func (r *reduction) speeds() {
	type place struct {
		name, step, layer int32
		rank              *rankEvents
	}
	compute := sums(r, func(g group) (struct{}, bool) { return struct{}{}, r.counts(g.at.Step) && !g.class.Collective })
	dense := sums(r, func(g group) (place, bool) {
		return place{g.rank.of.common[g.name], g.at.Step, g.at.Layer, g.rank}, r.counts(g.at.Step) && !g.class.Collective &&
			g.at.Phase != PhaseExperts && g.class.Phase == kernel.PhaseOther && g.class.Launch.Anchor == steps.Dense
	})
	all, ns := router.Number(0), make([]router.Number, len(r.ranks))
	for at, of := range dense {
		alike := !slices.ContainsFunc(r.ranks, func(p *rankEvents) bool {
			return dense[place{at.name, at.step, at.layer, p}].Instances != of.Instances
		})
		if alike {
			all += router.Number(of.TotalNS)
			ns[slices.Index(r.ranks, at.rank)] += router.Number(of.TotalNS)
		}
	}
	if len(r.ranks) > 1 && float64(all) >= leastDense*float64(compute[struct{}{}].TotalNS) {
		for i, p := range r.ranks {
			r.trace.Speeds = append(r.trace.Speeds, Speed{p.Rank.Rank, ns[i] * router.Number(len(ns)) / all})
		}
	}
}

// leastSlow is by how much more time a rank takes for the same dense GEMMs than the mean rank
// before its GPU is called slow. On GPUs that nothing else used, of all captures in testdata, ranks
// lie from 0.976 to 1.024; beside a second stream on the GPU at 1.051 to 1.13, beside another process
// at 1.033 and 1.063.
const leastSlow = 0.03

// asSlowest is by how much less time a rank may take than the slowest one to be as slow.
const asSlowest = 0.01

// SlowGPUs are the ranks that take longest for the same dense GEMMs, over what their tokens explain, and by how much
// more than the mean of the others: 0.3 where they take 1.3 times as long there. A GEMM of fewer tokens takes less
// time, but not in proportion. None where all ranks are alike, and where ranks hold unknown numbers of tokens.
func (t *Trace) SlowGPUs() (ranks []int, by router.Number) {
	if len(t.Speeds) < 2 || t.Attention != nil && len(t.Attention.Tokens) == 0 {
		return nil, 0
	}
	over, slow := make([]router.Number, len(t.Speeds)), router.Number(0)
	for i, s := range t.Speeds {
		if over[i] = s.OverMean; t.Attention != nil {
			over[i] /= max(1, router.Number(t.Attention.Tokens[i]/stat.Mean(t.Attention.Tokens, nil)))
		}
	}
	most := slices.Max(over)
	for i, own := range over {
		if most >= 1+leastSlow && own >= (1-asSlowest)*most {
			ranks, slow = append(ranks, t.Speeds[i].Rank), slow+own
		}
	}
	n, all := router.Number(len(ranks)), router.Number(len(over))
	return ranks, slow/n*(all-n)/(all-slow) - 1
}
