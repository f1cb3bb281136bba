package trace

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/imbalance"
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

// speeds fills Speeds: over the steps that count, by the dense GEMMs of a step and layer that every
// rank runs equally often. Empty for one rank, and where such GEMMs have too little time.
func (r *reduction) speeds() {
	dense := make([]bool, len(r.classes)) // by name: a GEMM that every token passes
	for i, c := range r.classes {
		dense[i] = c.Phase == kernel.PhaseOther && c.Launch(r.names.Values[i]).Anchor == steps.Dense
	}
	type place struct {
		rank              *rankEvents
		name, step, layer int32 // no name of what is no dense GEMM
	}
	counted := imbalance.Places(r.times.StepsOf(imbalance.Counts))
	gemms := sums(r, func(g group) (place, bool) {
		at := place{g.rank, g.rank.of.common[g.name], g.at.Step, g.at.Layer}
		if !dense[at.name] || g.at.Phase == PhaseExperts {
			at.name = NoID
		}
		_, counts := counted[int(g.at.Step)]
		return at, counts && !g.class.Collective
	})
	times, all, compute := make([]int64, len(r.ranks)), int64(0), int64(0)
	for at, s := range gemms {
		if compute += s.ns; at.name == NoID || slices.ContainsFunc(r.ranks, func(p *rankEvents) bool {
			return gemms[place{p, at.name, at.step, at.layer}].kernels != s.kernels
		}) {
			continue
		}
		times[slices.Index(r.ranks, at.rank)] += s.ns
		all += s.ns
	}
	if len(r.ranks) < 2 || float64(all) < leastDense*float64(compute) {
		return
	}
	for i, p := range r.ranks {
		r.trace.Speeds = append(r.trace.Speeds,
			Speed{p.Rank.Rank, router.Number(times[i]) * router.Number(len(times)) / router.Number(all)})
	}
}

// leastSlow is by how much more time a rank takes for the same dense GEMMs than the mean rank
// before its GPU is called slow. On GPUs that nothing else used, of all captures in testdata, ranks
// lie from 0.989 to 1.016; beside a second stream on the GPU at 1.13, beside another process at
// 1.033 and 1.063.
const leastSlow = 0.03

// SlowGPU is the rank that takes longest for the same dense GEMMs, and by how much more than the mean
// of the others: 0.3 where they take 1.3 times as long there. Not ok where all ranks are alike, or where
// none takes longer than by its tokens.
func (t *Trace) SlowGPU() (rank int, by router.Number, ok bool) {
	if len(t.Speeds) < 2 || t.Attention != nil && !t.slowForTokens() {
		return 0, 0, false
	}
	slow := slices.MaxFunc(t.Speeds, func(a, b Speed) int { return cmp.Compare(a.OverMean, b.OverMean) })
	n := router.Number(len(t.Speeds))
	return slow.Rank, slow.OverMean*(n-1)/(n-slow.OverMean) - 1, slow.OverMean >= 1+leastSlow
}

// slowForTokens reports a rank whose dense GEMMs take longer, over the mean, than its tokens explain: a
// GEMM of fewer tokens takes less time, but not in proportion.
func (t *Trace) slowForTokens() bool {
	if t.Attention.Tokens == nil {
		return false
	}
	mean := stat.Mean(t.Attention.Tokens, nil)
	for i, s := range t.Speeds {
		if s.OverMean > router.Number((1+leastSlow)*max(1, t.Attention.Tokens[i]/mean)) {
			return true
		}
	}
	return false
}
