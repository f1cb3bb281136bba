package nsys

import (
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// doubts are the codes of warnings after which the imbalance over ranks is not to be
// relied on: kernels that are not there would move it without a sign.
var doubts = []string{"lost_kernels", "ranks_differ", "few_kernels", "different_runs", "graph_mode", "graph_lost", "no_experts", "microbatches",
	"unplaced_experts",
	"little_evidence", endedEarlyCode, "open_ranges"}

// AllWarnings are those of the trace and of its exports.
func (t *Trace) AllWarnings() []router.Warning {
	all := slices.Clone(t.Warnings)
	for _, e := range t.Exports {
		all = append(all, e.Warnings...)
	}
	return all
}

// Doubt says why the imbalance over ranks must not be relied on, empty if nothing
// speaks against it. Verbs put it into the headline.
func (t *Trace) Doubt() string {
	all := t.AllWarnings()
	for _, code := range doubts {
		if i := slices.IndexFunc(all, func(w router.Warning) bool { return w.Code == code }); i >= 0 {
			return all[i].Text
		}
	}
	return ""
}

// Undecided says why no gate on the imbalance over ranks may pass: a Doubt, or ranks of
// the run that were not given, of which one may be the busiest; else empty.
func (t *Trace) Undecided() string {
	if i := slices.IndexFunc(t.Warnings, func(w router.Warning) bool { return w.Code == missingRanks }); i >= 0 && t.Doubt() == "" {
		return t.Warnings[i].Text
	}
	return t.Doubt()
}

// endedEarlyCode is the code of the warning that the capture of kernels ended before the work.
const endedEarlyCode = "ended_early"

// missingRanks is the code of the warning of ranks that were not given.
const missingRanks = "missing_ranks"

// gap is by how much one rank begins after another one ended, with a sentence on it and
// their files; 0 where sessions are not recorded, or all overlap.
func (r *reduction) gap() (ns int64, text, files string) {
	type span struct {
		of       *rankEvents
		from, to int64
	}
	var first span // the one that ended first
	var last span  // the one that began last
	for _, p := range r.ranks {
		if p.of.session == 0 || len(p.events) == 0 {
			return 0, "", ""
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
	ns = max(0, last.from-first.to)
	return ns, fmt.Sprintf("rank %d begins %s after rank %d ended", last.of.rank.Rank, quantity.Duration(float64(ns)), first.of.rank.Rank), first.of.rank.Export + " and " + last.of.rank.Export
}

// differentRuns warns of ranks that ran at different times, which one run's ranks never
// do: they meet in every layer. It warns of different models too.
func (r *reduction) differentRuns() {
	if ns, text, _ := r.gap(); ns > clockError {
		r.warn("different_runs", "", text+": they are not of one run")
		return
	}
	r.otherModel()
}

// oneTime refuses ranks that ran at times too far apart for any clocks.
func (r *reduction) oneTime() error {
	if ns, text, files := r.gap(); ns > mostSkew {
		return &input.Error{File: files, Expected: "ranks of one run", Found: text, Try: "pass the exports of one run", Err: ErrNotOneRun}
	}
	return nil
}

// clockError is by how many nanoseconds the clocks of two hosts may disagree.
const clockError = int64(5e9)

const (
	leastPlaced  = 0.5   // the share of expert GEMM time that must be in a layer
	mostLost     = 0.002 // the share of launches whose kernel may be missing: profilers drop some at the ends
	mostUnknowns = 1.0   // unknown time over expert time, where expert GEMMs are not recognized
	mostBeside   = 0.5   // of expert time, likewise: activations and the like
	leastCounted = 0.01  // the share of compute that the expert time of the steps that count must be
)

// besideGEMMs is the expert time of kernels that only their name, or their position,
// places there, and that are neither GEMMs nor a whole layer in one.
func (r *reduction) besideGEMMs() (ns int64) {
	for i := range r.trace.Kernels {
		k := &r.trace.Kernels[i]
		c := &r.classes[r.names.Number(k.Name)]
		if k.Placed == PhaseExperts && (k.Evidence == byName.String() || k.Evidence == byPosition.String()) && !c.GEMM && len(c.Fused) == 0 {
			ns += k.TotalNS
		}
	}
	return ns
}

// placedExperts warns where too little of the experts' time is known for a judgement.
func (r *reduction) placedExperts(times *imbalance.Times) {
	var gemms, placed, experts, unknown, all int64
	for i := range r.trace.Cells {
		c := &r.trace.Cells[i]
		all += c.TotalNS - c.CollectiveNS
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
	case experts == 0:
		r.warn("no_experts", "", "no kernel is recognized as an expert GEMM, and no range names experts: a dense model, or plain GEMMs for each expert; record NVTX ranges (vLLM --enable-layerwise-nvtx-tracing, SGLang --enable-layerwise-nvtx-marker, or your own, such as 'layer 3 experts'), or name kernels by --phase experts=REGEX")
	case len(r.ranks) < 2:
	case float64(placed) < leastPlaced*float64(gemms):
		r.warn("unplaced_experts", "", fmt.Sprintf("%s of the expert GEMM time is in no layer, where the busy ranks of different layers cancel%s", quantity.Percent(1-float64(placed)/float64(gemms)), record))
	case times.Of == imbalance.OfPhase && (float64(unknown) > mostUnknowns*float64(experts) || float64(r.besideGEMMs()) > mostBeside*float64(experts)):
		r.warn("unplaced_experts", "", "no expert GEMM is recognized: the time of the phase experts is that of kernels beside the GEMMs, or less than the unknown time; --phase experts=REGEX names kernels, and NVTX ranges name phases")
	default:
		r.warnLittleEvidence(times, all)
	}
}

// warnLittleEvidence warns where the steps that count hold next to no expert time, of all
// ranks or of one. all is the compute of all ranks.
func (r *reduction) warnLittleEvidence(times *imbalance.Times, all int64) {
	byRank, sum := times.ExpertsByRank()
	idle := slices.IndexFunc(times.Ranks, func(rank int) bool { ns, has := byRank[rank]; return has && ns == 0 })
	switch {
	case len(times.StepsOf(imbalance.Counts)) == 0:
		r.warn("little_evidence", "", "no step was recorded whole by all ranks; record more steps")
	case sum < leastCounted*float64(all):
		r.warn("little_evidence", "", fmt.Sprintf("the steps that count hold %s of expert time, %s of the GPU time without collectives; "+
			"record more whole steps", quantity.Duration(sum), quantity.Percent(sum/float64(all))))
	case idle >= 0:
		r.warn("little_evidence", "", fmt.Sprintf("rank %d ran no expert kernel in the steps that count: "+
			"its kernels were lost, or its experts have no name", times.Ranks[idle]))
	}
}
