package proof

import (
	"cmp"
	"fmt"

	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/quantity"
)

// Rules are what is known of the proof that launches can give.
type Rules struct {
	Treatment string       // its name
	Line      string       // pattern of the proof line, empty for none
	Switch    string       // the first variable that turns it on
	Said      string       // the switch in the command of the perfect arm, of an engine that prints nothing of it
	Chance    bool         // the perfect arm routes at random
	Within    bool         // ranks acknowledge their router
	Counts    []*LoadProof // that the launches of both arms recorded
	// Printed says that every launch of the perfect arm has printed the line, so that its absence from
	// a log is evidence.
	Printed bool
	// Limited is the model whose expert groups TensorRT-LLM's first planner ignores, empty for none.
	Limited string
}

// Launch is what one launch, or one order within it, shows of its routing.
type Launch struct {
	Name      string     // of a report; empty within a campaign
	Ranks     int        // that it must prove; 0: unknown
	Counted   *LoadProof // loads that it recorded
	Doubt     string     // why these prove nothing, empty where they do
	Placement string     // option by which its command places experts, empty for none
	Report    metrics.Proof
	Router    string // that Answered ranks acknowledged
	Answered  int
	Processes int // of the engine, 0 where its command does not say
	Lines     []evidence.ProofLine
}

// otherFlags names the flags that give better evidence.
const otherFlags = "--proof or --counts"

// of says what a launch shows of its ranks. Recorded loads go before the report's own
// statement, and that before acknowledgements or lines in the log.
func (r Rules) of(arm gain.Arm, l Launch) []rank {
	switch {
	case l.Counted != nil:
		return r.byCounts(arm, l)
	case l.Report.Claimed:
		return byReport(l.Report, l.Ranks)
	case r.Within:
		return byOrder(l)
	case r.Line != "":
		return r.byLine(arm, l)
	case r.Said != "" && arm == gain.Perfect:
		return all(balanced, "started with %s, of which the engine prints nothing: record counts to measure it", r.Said)
	case r.Said != "":
		return all(unbalanced, "started without %s", r.Said)
	}
	return all(unproved,
		"the output does not state its routing, and no proof line of this treatment is known: give %s", otherFlags)
}

// all is evidence about all ranks together.
func all(shows gain.Arm, format string, args ...any) []rank {
	return rank{shows: shows, evidence: fmt.Sprintf(format, args...)}.forRanks(1)
}

// byOrder takes the word of the ranks that acknowledged an order.
func byOrder(l Launch) []rank {
	if l.Answered == 0 || l.Answered < l.Ranks {
		return all(unproved, "%s acknowledged router %s", quantity.Count(l.Answered, "rank"), l.Router)
	}
	r := rank{shows: unbalanced, evidence: "the rank acknowledged router " + l.Router}
	if l.Router == "perfect" {
		r.shows = balanced
	}
	return r.forRanks(l.Answered)
}

// byReport judges a launch by its own report: whether it states a perfect
// router, and the loads it measured, which must agree: over ranks, or over experts
// where no rank's is known.
func byReport(said metrics.Proof, wanted int) []rank {
	loads := reported(said).loads()
	report, word := "report: ", "learned router, "
	if said.Ranks > 1 {
		report = fmt.Sprintf("report of all %d ranks: ", said.Ranks)
	}
	r := rank{measured: len(loads) > 0, shows: unbalanced}
	if said.Perfect {
		r.shows, word = balanced, "perfect router, "
	}
	switch {
	case wanted == 0 && len(loads) == 0:
		r.shows, word = unproved, "no loads, and the number of ranks is unknown: seen on 1 rank; say --ranks N"
	case said.Perfect && len(loads) > 0 && !loads.within(evenWithin):
		r.shows, word = unproved, word+"contradicted by "+loads.String()
	case !said.Perfect && loads.within(unevenBeyond):
		r.shows, word = balanced, word+"contradicted by "+loads.String()
	default:
		word += loads.String()
	}
	r.evidence = report + word
	if wanted > 1 && said.Ranks <= 1 { // a report of one rank is no report of the others
		return []rank{r}
	}
	return r.forRanks(said.Ranks)
}

// byCounts judges a launch by the loads it recorded, each beside its floor. The
// perfect arm is proved by even ranks and even experts, random routing by ranks where they
// are known; the normal arm by unevenness of either. Counts that the report
// contradicts prove nothing.
func (r Rules) byCounts(arm gain.Arm, l Launch) []rank {
	loads, elsewhere := l.Counted.loads(), l.Placement != "" && !l.Counted.Placed && l.Counted.RankMaxOverMean.Defined()
	if elsewhere {
		loads = loads[1:] // the experts'
	}
	one := rank{measured: true, shows: unbalanced, evidence: "recorded expert counts: " + loads.String()}
	even := loads.within(evenWithin)
	if r.Chance && arm == gain.Perfect && len(loads) > 0 {
		even = loads[:1].within(evenWithin)
	}
	switch {
	case len(loads) == 0:
		one.shows, one.evidence = unproved, "the recorded expert counts hold no load"
	case cmp.Or(l.Doubt, r.partial(l)) != "":
		one.shows, one.evidence = unproved, "the recorded expert counts prove nothing: "+cmp.Or(l.Doubt, r.partial(l))
	case elsewhere && even && arm == gain.Perfect:
		one.shows = unproved
		one.evidence += fmt.Sprintf("; the command places experts by %s, which the counts do not record, so the load of "+
			"ranks is unknown: record counts that say where experts are (SGLang's recorder does)", l.Placement)
	case even:
		one.shows = balanced
	case arm == gain.Perfect && r.Treatment == "trtllm":
		one.evidence += "; TensorRT-LLM applies the switch at the top of MoE.forward, so layers whose model calls run_moe " +
			"directly keep their routing"
	}
	return one.forRanks(l.Counted.Ranks)
}

// partial says what the counts of a launch lack beside its ranks and the counts of others: "they are of 1 of 4 ranks".
func (r Rules) partial(l Launch) string {
	ranks, own := l.Ranks, l.Counted
	for _, o := range r.Counts {
		ranks = max(ranks, o.Ranks)
		if own.Experts*o.Experts > 0 && own.Experts != o.Experts {
			return fmt.Sprintf("they are of %d experts, another launch's of %d", own.Experts, o.Experts)
		}
		if a, b := len(own.Slots), len(o.Slots); a*b > 0 && a != b {
			return fmt.Sprintf("they are of %s, another launch's of %d", quantity.Count(a, "layer"), b)
		}
	}
	if own.Ranks > 0 && own.Ranks < ranks {
		return fmt.Sprintf("they are of %d of %d ranks", own.Ranks, ranks)
	}
	return ""
}
