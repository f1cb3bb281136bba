package proof

import (
	"fmt"

	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Rules are what is known of the proof that launches can give.
type Rules struct {
	Treatment string // its name
	Line      string // pattern of the proof line, empty for none
	Switch    string // the first variable that turns it on
	Said      string // the switch in the command of the perfect arm, of an engine that prints nothing of it
	Chance    bool   // the perfect arm routes at random
	Within    bool   // ranks acknowledge their router
	// Printed says that every launch of the perfect arm has printed the line, so that its absence from
	// a log is evidence.
	Printed bool
	// Limited is the model whose expert groups the planner of such a line ignores, empty for none.
	Limited func(line string) string
}

// Launch is what one launch, or one order within it, shows of its routing.
type Launch struct {
	Ranks     int        // that it must prove; 0: unknown
	Counted   *LoadProof // loads that it recorded
	Doubt     string     // why these prove nothing, empty where they do
	Placement string     // option by which its command places experts, empty for none
	Report    metrics.Proof
	Router    string // that Answered ranks acknowledged
	Answered  int
	Lines     []evidence.ProofLine
}

// LoadProof is how even the loads are that a launch recorded: max/mean of the layer that
// is furthest above its floor, which is the best that indivisible slots allow. Undefined
// where the files do not say.
type LoadProof struct {
	Source            string        `json:"source"`
	Ranks             int           `json:"ranks"` // 0 unknown
	TopK              int           `json:"top_k"` // 0 unknown
	RankMaxOverMean   router.Number `json:"rank_max_over_mean"`
	RankFloor         router.Number `json:"rank_floor"`
	RankMean          router.Number `json:"rank_mean"` // of max/mean over layers
	ExpertMaxOverMean router.Number `json:"expert_max_over_mean"`
	ExpertFloor       router.Number `json:"expert_floor"`
	// Slots are by layer; Recorded is the share of the steps that hold them,
	// 0 where the files do not say.
	Slots    map[int]int64 `json:"slots,omitempty"`
	Recorded float64       `json:"recorded,omitempty"`
	// Placed says that the loads of ranks are by the recorded or the named placement; else
	// they hold for contiguous experts.
	Placed bool `json:"placed,omitempty"`
}

// OtherFlags name the flags that give better evidence.
const OtherFlags = "--proof or --counts"

// Of says what a launch proves about its ranks. Recorded loads go before the report's own
// statement, and that before acknowledgements or lines in the log.
func (r Rules) Of(arm gain.Arm, l Launch) (ranks []Rank) {
	switch {
	case l.Counted != nil:
		ranks = r.byCounts(arm, l)
	case l.Report.Claimed:
		ranks = byReport(l.Report, l.Ranks)
	case r.Within:
		ranks = byOrder(l)
	case r.Line != "":
		ranks = r.byLine(arm, l)
	case r.Said != "" && arm == gain.Perfect:
		ranks = all(balanced, "started with %s, of which the engine prints nothing: record counts to measure it", r.Said)
	case r.Said != "":
		ranks = all(unbalanced, "started without %s", r.Said)
	default:
		ranks = all(unproved,
			"the output does not state its routing, and no proof line of this treatment is known: give %s", OtherFlags)
	}
	for i := range ranks {
		ranks[i].Arm, ranks[i].Launches = arm, 1
	}
	return ranks
}

// all is evidence about all ranks together.
func all(shows gain.Arm, format string, args ...any) []Rank {
	return []Rank{{Rank: gain.AllRanks, Shows: shows, Evidence: fmt.Sprintf(format, args...)}}
}

// routerPerfect is the balanced router's name in an order.
const routerPerfect = "perfect"

// byOrder takes the word of the ranks that acknowledged an order.
func byOrder(l Launch) []Rank {
	p := Rank{Shows: unbalanced, Evidence: "the rank acknowledged router " + l.Router}
	if l.Router == routerPerfect {
		p.Shows = balanced
	}
	if l.Answered == 0 || l.Answered < l.Ranks {
		return all(unproved, "%s acknowledged router %s", quantity.Count(l.Answered, "rank"), l.Router)
	}
	return p.forRanks(l.Answered)
}

// The limits for loads. A perfect arm's layer may exceed the floor by what
// indivisible loads cost; a normal arm is proved unbalanced by one layer beyond what
// rounding can explain.
const (
	balancedWithin   = 1.05 // max/mean of every layer of a perfect launch, at most
	unbalancedBeyond = 1.01 // max/mean of some layer of a normal launch, more than this
)

// byReport judges a launch by its own report: whether it states a perfect
// router, and the loads it measured, which must agree: over ranks, or over experts
// where no rank's is known.
func byReport(said metrics.Proof, wanted int) []Rank {
	ranks, experts := router.Undefined(), router.Undefined()
	for _, l := range said.Layers {
		ranks, experts = Most(ranks, l.RankMaxOverMean), Most(experts, l.ExpertMaxOverMean)
	}
	worst := evidence.Measured(ranks, said.RankFloor, experts, said.ExpertFloor)
	report, word := "report: ", "learned router, "
	if said.Ranks > 1 {
		report = fmt.Sprintf("report of all %d ranks: ", said.Ranks)
	}
	p := Rank{Measured: len(worst) > 0, Shows: unbalanced}
	if said.Perfect {
		p.Shows, word = balanced, "perfect router, "
	}
	switch {
	case wanted == 0 && len(worst) == 0:
		p.Shows, word = unproved, "no loads, and the number of ranks is unknown: seen on 1 rank; say --ranks N"
	case said.Perfect && len(worst) > 0 && !worst.Within(balancedWithin):
		p.Shows, word = unproved, word+"contradicted by "+worst.String()
	case !said.Perfect && worst.Within(unbalancedBeyond):
		p.Shows, word = balanced, word+"contradicted by "+worst.String()
	default:
		word += worst.String()
	}
	p.Evidence = report + word
	if wanted > 1 && said.Ranks <= 1 { // a report of one rank is no report of the others
		return []Rank{p}
	}
	return p.forRanks(said.Ranks)
}

// byCounts judges a launch by the loads it recorded, each beside its floor. The
// perfect arm is proved by even ranks and even experts, random routing by ranks where they
// are known; the normal arm by unevenness of either. Counts that the report
// contradicts prove nothing.
func (r Rules) byCounts(arm gain.Arm, l Launch) []Rank {
	c := *l.Counted
	elsewhere := l.Placement != "" && !c.Placed && c.RankMaxOverMean.Defined()
	if elsewhere {
		c.RankMaxOverMean = router.Undefined()
	}
	worst := evidence.Measured(c.RankMaxOverMean, c.RankFloor, c.ExpertMaxOverMean, c.ExpertFloor)
	p := Rank{Measured: true, Shows: unbalanced, Evidence: "recorded expert counts: " + worst.String()}
	even := worst.Within(balancedWithin)
	if r.Chance && arm == gain.Perfect && len(worst) > 0 {
		even = worst[:1].Within(balancedWithin)
	}
	switch {
	case len(worst) == 0:
		p.Shows, p.Evidence = unproved, "the recorded expert counts hold no load"
	case l.Doubt != "":
		p.Shows, p.Evidence = unproved, "the recorded expert counts prove nothing: "+l.Doubt
	case elsewhere && even && arm == gain.Perfect:
		p.Shows, p.Evidence = unproved,
			fmt.Sprintf("%s; the command places experts by %s, which the counts do not record, so the load of ranks is "+
				"unknown: record counts that say where experts are (SGLang's recorder does)", p.Evidence, l.Placement)
	case even:
		p.Shows = balanced
	case arm == gain.Perfect && r.Treatment == "trtllm":
		p.Evidence += "; TensorRT-LLM applies the switch at the top of MoE.forward, so layers whose model calls run_moe " +
			"directly keep their routing"
	}
	return p.forRanks(c.Ranks)
}

// Most is the larger of two numbers, as far as they are defined.
func Most(a, b router.Number) router.Number {
	if !a.Defined() || b > a {
		return b
	}
	return a
}
