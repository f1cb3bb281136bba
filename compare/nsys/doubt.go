package nsys

import (
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// doubts are the codes of warnings after which the imbalance over ranks is not to be
// relied on: kernels that are not there would move it without a sign.
var doubts = []string{"lost_kernels", "ranks_differ", "few_kernels", "different_runs", "graph_mode", "graph_lost", "unplaced_experts"}

// Doubt says why the imbalance over ranks must not be relied on, empty if nothing
// speaks against it. Verbs put it into the headline, and no gate passes on it.
func (t *Trace) Doubt() string {
	all := slices.Clone(t.Warnings)
	for _, e := range t.Exports {
		all = append(all, e.Warnings...)
	}
	for _, code := range doubts {
		if i := slices.IndexFunc(all, func(w router.Warning) bool { return w.Code == code }); i >= 0 {
			return all[i].Text
		}
	}
	return ""
}

// differentRuns warns of ranks that ran at different times, which one run's ranks never
// do: they meet in every layer.
func (r *reduction) differentRuns() {
	type span struct {
		of       *rankEvents
		from, to int64
	}
	var first span // the one that ended first
	var last span  // the one that began last
	for _, p := range r.ranks {
		if p.of.session == 0 || len(p.events) == 0 {
			return
		}
		end := p.events[len(p.events)-1]
		s := span{p, p.of.session + p.events[0].start, p.of.session + end.start + end.duration}
		if first.of == nil || s.to < first.to {
			first = s
		}
		if last.of == nil || s.from > last.from {
			last = s
		}
	}
	if gap := last.from - first.to; len(r.ranks) > 1 && gap > clockError {
		r.warn("different_runs", "", fmt.Sprintf("rank %d begins %s after rank %d ended: they are not of one run", last.of.rank.Rank, quantity.Duration(float64(gap)), first.of.rank.Rank))
	}
}

// clockError is by how many nanoseconds the clocks of two hosts may disagree.
const clockError = int64(5e9)

const (
	leastPlaced  = 0.5   // the share of expert GEMM time that must be in a layer
	mostLost     = 0.002 // the share of launches whose kernel may be missing: profilers drop some at the ends
	mostUnknowns = 1.0   // unknown time over expert time, where expert GEMMs are not recognized
)

// placedExperts warns where too little of the experts' time is known for a judgement.
func (r *reduction) placedExperts(times *imbalance.Times) {
	var gemms, placed, experts, unknown int64
	for i := range r.trace.Cells {
		c := &r.trace.Cells[i]
		if gemms += c.GEMMNS; c.Layer.Defined() {
			placed += c.GEMMNS
		}
		switch c.Phase {
		case PhaseExperts:
			experts += c.TotalNS - c.CollectiveNS
		case PhaseUnknown:
			unknown += c.TotalNS
		}
	}
	const record = "; name steps and layers by NVTX ranges, or record more whole steps"
	switch {
	case len(r.ranks) < 2 || experts == 0:
	case float64(placed) < leastPlaced*float64(gemms):
		r.warn("unplaced_experts", "", fmt.Sprintf("%.0f %% of the expert GEMM time is in no layer, where the busy ranks of different layers cancel%s", 100*(1-float64(placed)/float64(gemms)), record))
	case times.Of == imbalance.OfPhase && float64(unknown) > mostUnknowns*float64(experts):
		r.warn("unplaced_experts", "", "no expert GEMM is recognized, and more GPU time is unknown than in the phase experts; --phase experts=REGEX names kernels, and NVTX ranges name phases")
	}
}
