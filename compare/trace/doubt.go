package trace

import (
	"slices"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
)

// The doubts: codes of warnings after which the imbalance over ranks is not to be relied on, the one to
// lead with first.
const (
	FusedExperts     = "fused_experts"     // kernels exchange tokens and run experts in one (placedExperts)
	lostKernels      = "lost_kernels"      // the profiler lost some (describe), or steps hold unequally many (imbalance)
	ranksDiffer      = "ranks_differ"      // ranks recorded different layers or steps (structure, warnMissingRanges)
	graphMode        = "graph_mode"        // CUDA graphs recorded whole hide their kernels (describe)
	unclearBlocks    = "unclear_blocks"    // expert blocks may be parts of layers, or of two microbatches (structure)
	rankGroups       = "rank_groups"       // ranks do not meet, or all wait for one that was not given (judgeReplay)
	noExperts        = "no_experts"        // too little of the experts' time is known (placedExperts)
	CountsContradict = "counts_contradict" // recorded counts cannot be of the trace (checkLoadFits)
)

var doubts = []string{FusedExperts, lostKernels, ranksDiffer, graphMode, unclearBlocks, rankGroups, noExperts,
	CountsContradict}

// missingRanks is the code of the warning of ranks that were not given.
const missingRanks = "missing_ranks"

// AllWarnings are the warnings of the trace and of its exports.
func (t *Trace) AllWarnings() []router.Warning {
	all := slices.Clone(t.Warnings)
	for _, e := range t.Exports {
		all = append(all, e.Warnings...)
	}
	return all
}

// warning is the first warning of the first code that has any, without a code if none has.
func (t *Trace) warning(codes ...string) router.Warning {
	all := t.AllWarnings()
	for _, code := range codes {
		if i := slices.IndexFunc(all, func(w router.Warning) bool { return w.Code == code }); i >= 0 {
			return all[i]
		}
	}
	return router.Warning{}
}

// Doubt is the warning for which the imbalance over ranks must not be relied on, without a
// code if nothing speaks against it. Verbs put it into the headline.
func (t *Trace) Doubt() router.Warning { return t.warning(doubts...) }

// Undecided is the warning for which no gate on the imbalance over ranks may pass: a Doubt, or
// ranks of the run that were not given: one may be the busiest. Else it has no code.
func (t *Trace) Undecided() router.Warning {
	return t.warning(append(slices.Clone(doubts), missingRanks)...)
}

// Warned reports a warning of this code.
func (t *Trace) Warned(code string) bool { return t.warning(code).Code != "" }

const (
	leastPlaced  = 0.5  // the share of expert GEMM time that must be in a layer
	mostFused    = 0.1  // the share of expert time that may be in kernels that fuse it with more
	leastCounted = 0.01 // the share of compute that the expert time of the steps that count must be
)

// placedExperts warns where too little of the experts' time is known for a judgment.
func (r *reduction) placedExperts() {
	var gemms, placed, experts, all, fused int64
	for i := range r.trace.Cells {
		c := &r.trace.Cells[i]
		if all += c.ComputeNS(); c.Phase == PhaseExperts {
			experts += c.ComputeNS()
		}
		if r.trace.times.Unmarked || c.Step.Defined() {
			if gemms += c.GEMMNS; c.Layer.Defined() { // what runs before the first step, such as tuning, is of no layer
				placed += c.GEMMNS
			}
		}
	}
	fusing := sums(r, func(g group) (string, bool) { // kernels that run experts and more in one, in the steps that count
		return g.rank.of.Names[g.name], g.class.FusedExperts() && r.counts(g.at.Step)
	})
	for _, s := range fusing {
		fused += s.TotalNS
	}
	if share := float64(fused) / float64(fused+experts); share > mostFused {
		idle := func(k KernelStat) bool { return fusing[k.Name].TotalNS == 0 }
		kernels := slices.DeleteFunc(slices.Clone(r.trace.Kernels), idle)
		r.warn(FusedExperts, "share", share, "kernels", functions(kernels), "phases",
			r.classes[r.names.Number(kernels[0].Name)].Fused)
		return
	}
	byRank, expertNS := map[int]float64{}, 0.0 // in the steps that count
	for _, l := range r.trace.times.Judged() {
		for i, ns := range l.Means() {
			byRank[l.Ranks[i]] += ns
			expertNS += ns * float64(len(r.counted))
		}
	}
	idle := slices.IndexFunc(r.trace.times.Ranks, func(rank int) bool { ns, has := byRank[rank]; return has && ns == 0 })
	endedEarly := len(r.trace.times.Steps) == 1 && !r.partial && // within the first step: ranges name others
		slices.ContainsFunc(r.exports, func(d *exportSummary) bool { return len(d.StepNames) > 1 })
	switch {
	case experts == 0:
		r.warn(noExperts)
	case len(r.ranks) < 2:
	case float64(placed) < leastPlaced*float64(gemms):
		r.warn(noExperts, "why", "layers", "share", 1-float64(placed)/float64(gemms))
	case len(r.counted) == 0 || endedEarly:
		r.warn(noExperts, "why", "steps")
	case expertNS < leastCounted*float64(all):
		r.warn(noExperts, "why", "time", "expert_ns", expertNS, "share", expertNS/float64(all))
	case idle >= 0 && r.trace.times.Of != imbalance.OfGEMM: // else it ran as many routers as the others
		r.warn(noExperts, "why", "rank", "rank", r.trace.times.Ranks[idle])
	}
}
