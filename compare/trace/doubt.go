package trace

import (
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// doubts are the codes of warnings after which the imbalance over ranks is not to be
// relied on: kernels that are not there would move it without a sign.
var doubts = []string{FusedExperts, "lost_kernels", "ranks_differ", "few_kernels", "different_runs", "graph_mode",
	"graph_lost",
	"no_experts", "microbatches", "unclear_blocks", rankGroups, unseenRank,
	"unplaced_experts",
	"little_evidence", EndedEarly, "open_ranges", CountsContradict}

// FusedExperts is the code of the warning that kernels exchange tokens and run the experts in
// one, so that the time of ranks is work and waiting together.
const FusedExperts = "fused_experts"

// AllWarnings are the warnings of the trace and of its exports.
func (t *Trace) AllWarnings() []router.Warning {
	all := slices.Clone(t.Warnings)
	for _, e := range t.Exports {
		all = append(all, e.Warnings...)
	}
	return all
}

// Doubt is the warning for which the imbalance over ranks must not be relied on, without a
// code if nothing speaks against it. Verbs put it into the headline.
func (t *Trace) Doubt() router.Warning {
	all := t.AllWarnings()
	for _, code := range doubts {
		if i := slices.IndexFunc(all, func(w router.Warning) bool { return w.Code == code }); i >= 0 {
			return all[i]
		}
	}
	return router.Warning{}
}

// Undecided is the warning for which no gate on the imbalance over ranks may pass: a Doubt, or
// ranks of the run that were not given, of which one may be the busiest; else without a code.
func (t *Trace) Undecided() router.Warning {
	doubt := t.Doubt()
	if i := slices.IndexFunc(t.Warnings, func(w router.Warning) bool { return w.Code == missingRanks }); i >= 0 &&
		doubt.Code == "" {
		return t.Warnings[i]
	}
	return doubt
}

// Codes of warnings of ranks that do not all meet, and of one that was not given and that all wait for.
const (
	rankGroups = "rank_groups"
	unseenRank = "unseen_rank"
)

// mostStay is how many times as long the shortest stays in collectives behind experts may be in some
// layers as in others: in 25 real kinds of steps 1.35 at most, 1.06 at prefill; 1.6 and more where a busy
// rank is missing.
const mostStay = 1.5

// missingRanks is the code of the warning of ranks that were not given.
const missingRanks = "missing_ranks"

// gap is by how much the last rank begins after the first one ended; 0 where sessions are
// not recorded, or all overlap.
func (r *reduction) gap() (ns int64, firstRank, lastRank *rankEvents) {
	type span struct {
		of       *rankEvents
		from, to int64
	}
	var first, last span // the one that ended first and the one that began last
	for _, p := range r.ranks {
		if p.of.Session == 0 || len(p.events) == 0 {
			return 0, nil, nil
		}
		end := p.events[len(p.events)-1]
		s := span{p, p.of.Session + p.events[0].start, p.of.Session + end.start + end.duration}
		if first.of == nil || s.to < first.to {
			first = s
		}
		if last.of == nil || s.from > last.from {
			last = s
		}
	}
	return max(0, last.from-first.to), first.of, last.of
}

// differentRuns warns of ranks that ran at different times, which one run's ranks never
// do: they meet in every layer. Clocks are wrong where their collectives show that they do.
func (r *reduction) differentRuns() {
	if ns, first, last := r.gap(); ns > clockError && !r.met {
		r.warn("different_runs", "", "why", "times", "rank", last.Rank.Rank, "gap_ns", ns, "other", first.Rank.Rank)
	}
}

// oneTime refuses ranks that ran at times too far apart for any clocks.
func (r *reduction) oneTime() error {
	if ns, first, last := r.gap(); ns > mostSkew {
		found := fmt.Sprintf("rank %d begins %s after rank %d ended", last.Rank.Rank, quantity.Duration(float64(ns)),
			first.Rank.Rank)
		return &input.Error{File: first.Rank.Export + " and " + last.Rank.Export, Expected: "ranks of one run",
			Found: found, Try: "pass the exports of one run", Err: ErrNotOneRun}
	}
	return nil
}

// clockError is by how many nanoseconds the clocks of two hosts may disagree.
const clockError = int64(5e9)

const (
	leastPlaced  = 0.5  // the share of expert GEMM time that must be in a layer
	mostUnknowns = 1.0  // unknown time over expert time, where expert GEMMs are not recognized
	mostBeside   = 0.5  // of expert time, likewise: activations and the like
	mostFused    = 0.1  // the share of expert time that may be in kernels that fuse it with more
	leastCounted = 0.01 // the share of compute that the expert time of the steps that count must be
)

// besideGEMMs is the expert time of kernels that only their name, or their position,
// places there, and that are neither GEMMs nor a whole layer in one.
func (r *reduction) besideGEMMs() (ns int64) {
	for i := range r.trace.Kernels {
		k := &r.trace.Kernels[i]
		c := &r.classes[r.names.Number(k.Name)]
		if k.Placed == PhaseExperts && (k.Evidence == ranges.ByName.String() || k.Evidence == ranges.ByPosition.String()) &&
			!c.GEMM && len(c.Fused) == 0 {
			ns += k.TotalNS
		}
	}
	return ns
}

// placedExperts warns where too little of the experts' time is known for a judgment.
func (r *reduction) placedExperts(times *imbalance.Times) {
	var gemms, placed, experts, unknown, all int64
	for i := range r.trace.Cells {
		c := &r.trace.Cells[i]
		all += c.TotalNS - c.CollectiveNS
		if times.Unmarked || c.Step.Defined() { // what runs before the first step, such as tuning, is of no layer
			gemms += c.GEMMNS
			if c.Layer.Defined() {
				placed += c.GEMMNS
			}
		}
		switch c.Phase {
		case PhaseExperts:
			experts += c.TotalNS - c.CollectiveNS
		case PhaseUnknown:
			unknown += c.TotalNS
		}
	}
	switch fused, kernels := r.fusedExperts(times.StepsOf(imbalance.Counts)); {
	case float64(fused) > mostFused*float64(fused+experts):
		own, others := fusedPhases(kernels[0].Name)
		r.warn(FusedExperts, "", "share", float64(fused)/float64(fused+experts), "kernels", functions(kernels), "phases",
			append([]Phase{own}, others...))
	case experts == 0:
		r.warn("no_experts", "")
	case len(r.ranks) < 2:
	case float64(placed) < leastPlaced*float64(gemms):
		r.warn("unplaced_experts", "", "why", "layers", "share", 1-float64(placed)/float64(gemms))
	case times.Of == imbalance.OfPhase && (float64(unknown) > mostUnknowns*float64(experts) ||
		float64(r.besideGEMMs()) > mostBeside*float64(experts)):
		r.warn("unplaced_experts", "", "why", "gemms")
	default:
		r.warnLittleEvidence(times, all)
	}
}

// fusedExperts is the time of kernels that run experts and more in one, in steps given, and
// those kernels.
func (r *reduction) fusedExperts(steps []int) (ns int64, kernels []*KernelStat) {
	counts := map[int32]bool{}
	for _, step := range steps {
		counts[int32(step)] = true
	}
	used := map[string]bool{}
	for g := range r.groups() {
		if g.class.FusedExperts() && counts[g.at.Step] {
			ns, used[g.rank.of.Names[g.name]] = ns+g.ns, true
		}
	}
	for i := range r.trace.Kernels {
		if k := &r.trace.Kernels[i]; used[k.Name] {
			kernels = append(kernels, k)
		}
	}
	return ns, kernels
}

// warnLittleEvidence warns where the steps that count hold next to no expert time, of all
// ranks or of one. all is the compute of all ranks.
func (r *reduction) warnLittleEvidence(times *imbalance.Times, all int64) {
	byRank, sum := times.ExpertsByRank()
	idle := slices.IndexFunc(times.Ranks, func(rank int) bool { ns, has := byRank[rank]; return has && ns == 0 })
	switch {
	case len(times.StepsOf(imbalance.Counts)) == 0:
		r.warn("little_evidence", "", "why", "no_step")
	case sum < leastCounted*float64(all):
		r.warn("little_evidence", "", "why", "time", "expert_ns", sum, "share", sum/float64(all))
	case idle >= 0:
		r.warn("little_evidence", "", "why", "rank", "rank", times.Ranks[idle])
	}
}

// Warned reports a warning of this code, of the ranks together.
func (t *Trace) Warned(code string) bool {
	return slices.ContainsFunc(t.Warnings, func(w router.Warning) bool { return w.Code == code })
}
