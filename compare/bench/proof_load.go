package bench

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// otherProofs names the flags that give better evidence.
const otherProofs = "--proof, --counts or --profile"

// prove says what one launch's output proves about its ranks, of which there are
// so many (0: unknown). Recorded loads go before the report's own statement, and that
// before a line in the log, which every launch of the perfect arm printed or not.
func (s Spec) prove(arm gain.Arm, a Attempt, ranks int, printed bool) []rankProof {
	switch {
	case a.Counted != nil:
		return s.proveByCounts(arm, a)
	case a.Result != nil && a.Result.Proof.Claimed:
		return proveByReport(arm, a.Result.Proof, ranks)
	case s.Design.Within():
		return proveByOrder(arm, a.Orders[0], ranks)
	case s.Treatment.Line != "":
		return s.proveByLine(arm, a.LinesFound, ranks, printed)
	}
	return []rankProof{{arm: arm, rank: gain.AllRanks, launches: 1, status: unproved,
		evidence: "the output does not state its routing, and no proof line of this treatment is known: give " +
			otherProofs}}
}

// proveByOrder takes the word of the ranks that acknowledged an order, of so many (0: all that did).
func proveByOrder(arm gain.Arm, o Ordered, ranks int) []rankProof {
	p := rankProof{arm: arm, launches: 1, status: unbalanced, evidence: "the rank acknowledged router " + o.Router}
	if o.Router == routerPerfect {
		p.status = balanced
	}
	if o.Ranks == 0 || o.Ranks < ranks {
		p.rank, p.status = gain.AllRanks, unproved
		p.evidence = fmt.Sprintf("%s acknowledged router %s", quantity.Count(o.Ranks, "rank"), o.Router)
		return []rankProof{p}
	}
	return p.forRanks(o.Ranks)
}

// The limits for reported loads. A perfect arm's layer may exceed the floor by what
// indivisible loads cost; a normal arm is proved unbalanced by one layer beyond what
// rounding can explain.
const (
	balancedWithin   = 1.05 // max/mean of every layer of a perfect launch, at most
	unbalancedBeyond = 1.01 // max/mean of some layer of a normal launch, more than this
)

// ProveReport judges one report alone.
func ProveReport(arm gain.Arm, said metrics.Proof) gain.Proof {
	return proveByReport(arm, said, said.Ranks)[0].proof(gain.TraceProof{})
}

// proveByReport judges a launch by its own report: whether it states a perfect
// router, and the loads it measured, which must agree: those of ranks, or of experts
// where no rank's is known.
func proveByReport(arm gain.Arm, said metrics.Proof, wanted int) []rankProof {
	ranks, experts := router.Undefined(), router.Undefined()
	for _, l := range said.Layers {
		ranks, experts = most(ranks, l.RankMaxOverMean), most(experts, l.ExpertMaxOverMean)
	}
	worst := evidence.Measured(ranks, floorOf(said.RankFloor), experts, floorOf(said.ExpertFloor))
	report := "report: "
	if said.Ranks > 1 {
		report = fmt.Sprintf("report of all %d ranks: ", said.Ranks)
	}
	p := rankProof{arm: arm, launches: 1, measured: len(worst) > 0}
	switch {
	case wanted == 0 && len(worst) == 0:
		p.status, p.evidence = unproved,
			report+"no loads, and the number of ranks is unknown: seen on 1 rank; say --ranks N"
	case said.Perfect && len(worst) > 0 && !worst.Within(balancedWithin):
		p.status, p.evidence = unproved, report+"perfect router, contradicted by "+worst.String()
	case said.Perfect:
		p.status, p.evidence = balanced, report+"perfect router, "+worst.String()
	case worst.Within(unbalancedBeyond):
		p.status, p.evidence = balanced, report+"learned router, contradicted by "+worst.String()
	default:
		p.status, p.evidence = unbalanced, report+"learned router, "+worst.String()
	}
	if wanted > 1 && said.Ranks <= 1 { // a report of one rank is no report of the others
		p.rank = 0
		return []rankProof{p}
	}
	return p.forRanks(said.Ranks)
}

// proveByCounts judges a launch by the loads it recorded, each beside its floor. The
// perfect arm is proved by even ranks and even experts, random routing by ranks where they
// are known; the normal arm by unevenness of either. Counts that are not this launch's
// prove nothing.
func (s Spec) proveByCounts(arm gain.Arm, a Attempt) []rankProof {
	c := *a.Counted
	named, _ := a.placement(s.Folder)
	elsewhere := named != "" && !c.Placed && c.RankMaxOverMean.Defined()
	if elsewhere {
		c.RankMaxOverMean = router.Undefined()
	}
	worst := evidence.Measured(c.RankMaxOverMean, c.RankFloor, c.ExpertMaxOverMean, c.ExpertFloor)
	p := rankProof{arm: arm, launches: 1, measured: true, status: unbalanced, evidence: "recorded expert counts: " +
		worst.String()}
	even := worst.Within(balancedWithin)
	if s.Treatment.Chance() && arm == gain.Perfect && len(worst) > 0 {
		even = worst[:1].Within(balancedWithin)
	}
	switch doubt := cmp.Or(c.Foreign, a.otherWork()); {
	case len(worst) == 0:
		p.status, p.evidence = unproved, "the recorded expert counts hold no load"
	case doubt != "":
		p.status, p.evidence = unproved, "the recorded expert counts prove nothing: "+doubt
	case elsewhere && even && arm == gain.Perfect:
		p.status, p.evidence = unproved,
			fmt.Sprintf("%s; the command places experts by %s, which the counts do not record, so the load of ranks is unknown: record counts that say where experts are (SGLang's recorder does)", p.evidence, named)
	case even:
		p.status = balanced
	case arm == gain.Perfect && s.Treatment.Name == "trtllm":
		p.evidence += "; TensorRT-LLM applies the switch at the top of MoE.forward, so layers whose model calls run_moe directly keep their routing"
	}
	return p.forRanks(c.Ranks)
}

// forRanks is the same proof for each of so many ranks, from evidence about all of
// them together.
func (p rankProof) forRanks(ranks int) []rankProof {
	if ranks <= 1 {
		p.rank = gain.AllRanks
		return []rankProof{p}
	}
	proofs := slices.Repeat([]rankProof{p}, ranks)
	for rank := range proofs {
		proofs[rank].rank = rank
	}
	return proofs
}

// floorOf is the floor that a report states; undefined where it states none.
func floorOf(said router.Number) router.Number {
	if said >= 1 {
		return said
	}
	return router.Undefined()
}

// most is the larger of two numbers, as far as they are defined.
func most(a, b router.Number) router.Number {
	if !a.Defined() || b > a {
		return b
	}
	return a
}
