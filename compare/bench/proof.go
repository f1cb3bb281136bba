package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/router"
)

// prove says what one launch's output proves about its ranks, of which there are
// so many (0: unknown). Recorded loads go before the report's own word, and that
// before a line in the log, which every launch of the perfect arm printed or not.
func (t Treatment) prove(arm Arm, a Attempt, ranks int, printed bool) []claim {
	switch {
	case a.Counted != nil:
		return proveByCounts(arm, *a.Counted)
	case a.Result != nil && a.Result.Proof.Claimed:
		return proveByOutput(arm, a.Result.Proof)
	case t.Line != "":
		return t.proveByLine(arm, a.LinesFound, ranks, printed)
	}
	return []claim{{arm: arm, rank: AllRanks, launches: 1, standing: unproved,
		evidence: "the output does not say how it was routed, and no proof line is known for this treatment: give --proof, --counts or --profile"}}
}

// The marks that reported loads must reach. A perfect arm's layer may exceed
// the floor by what indivisible loads cost; a normal arm is proved unbalanced by
// one layer beyond what rounding can explain.
const (
	balancedWithin   = 1.05 // max/mean of every layer of a perfect launch, at most
	unbalancedBeyond = 1.01 // max/mean of some layer of a normal launch, more than this
)

// level is how uneven the worst layer of a launch is, over ranks or over experts.
type level struct {
	over       string
	max, floor router.Number // max/mean, and the least that whole slots allow, where that is known
}

// within reports whether the level is at most so many times its floor; where
// that is not known, times the 1 of large batches.
func (l level) within(mark router.Number) bool {
	if l.floor.Defined() {
		mark *= l.floor
	}
	return l.max <= mark
}

func (l level) String() string {
	if l.floor.Defined() {
		return fmt.Sprintf("%.3f over %s (floor %.3f)", l.max, l.over, l.floor)
	}
	return fmt.Sprintf("%.3f over %s", l.max, l.over)
}

// knownLevels are those of the levels that were measured: what is undefined is
// neither even nor uneven.
func knownLevels(levels ...level) []level {
	return slices.DeleteFunc(levels, func(l level) bool { return !l.max.Defined() })
}

// worstLayer describes levels, of which there is one at least.
func worstLayer(levels []level) string {
	var texts []string
	for _, l := range levels {
		texts = append(texts, l.String())
	}
	return "worst layer has max/mean " + strings.Join(texts, ", ")
}

// allWithin reports whether levels are known and all are within the mark.
func allWithin(levels []level, mark router.Number) bool {
	return len(levels) > 0 && !slices.ContainsFunc(levels, func(l level) bool { return !l.within(mark) })
}

// proveByOutput judges a launch by what its own report says: whether its router
// was perfect, and the loads it measured, which must agree: those of ranks, or of
// experts where no rank's is known.
func proveByOutput(arm Arm, said metrics.Proof) []claim {
	ranks, experts := router.Undefined(), router.Undefined()
	for _, l := range said.Layers {
		ranks, experts = most(ranks, l.RankMaxOverMean), most(experts, l.ExpertMaxOverMean)
	}
	levels := knownLevels(level{"ranks", ranks, router.Undefined()}, level{"experts", experts, router.Undefined()})
	loads := "it reports no loads"
	if len(levels) > 0 {
		loads = "its " + worstLayer(levels)
	}
	who := "the report says"
	if said.Ranks > 1 {
		who = fmt.Sprintf("the report says for all %d ranks:", said.Ranks)
	}
	p := claim{arm: arm, launches: 1}
	switch {
	case said.Perfect && len(levels) > 0 && !levels[0].within(balancedWithin):
		p.standing, p.evidence = unproved, who+" perfect router, but "+loads
	case said.Perfect:
		p.standing, p.evidence = balanced, who+" perfect router, and "+loads
	case allWithin(levels, unbalancedBeyond):
		p.standing, p.evidence = balanced, who+" learned router, but "+loads
	default:
		p.standing, p.evidence = unbalanced, who+" learned router, and "+loads
	}
	return p.forRanks(said.Ranks)
}

// proveByCounts judges a launch by the loads it recorded, each beside its floor.
// Even ranks are what the perfect arm wants (even experts, where no rank is
// known); a normal launch is proved by unevenness at either level.
func proveByCounts(arm Arm, c Counted) []claim {
	levels := knownLevels(level{"ranks", c.RankMaxOverMean, c.RankFloor}, level{"experts", c.ExpertMaxOverMean, c.ExpertFloor})
	if len(levels) == 0 {
		return claim{arm: arm, launches: 1, standing: unproved, evidence: "the recorded expert counts hold no load"}.forRanks(c.Ranks)
	}
	p := claim{arm: arm, launches: 1, standing: unbalanced, evidence: "recorded expert counts: " + worstLayer(levels)}
	if arm == Normal && allWithin(levels, balancedWithin) || arm == Perfect && levels[0].within(balancedWithin) {
		p.standing = balanced
	}
	return p.forRanks(c.Ranks)
}

// forRanks is the same claim for each of so many ranks, as evidence about all of
// them together allows.
func (c claim) forRanks(ranks int) []claim {
	if ranks <= 1 {
		c.rank = AllRanks
		return []claim{c}
	}
	claims := slices.Repeat([]claim{c}, ranks)
	for rank := range claims {
		claims[rank].rank = rank
	}
	return claims
}

// most is the larger of two numbers, as far as they are defined.
func most(a, b router.Number) router.Number {
	if !a.Defined() || b > a {
		return b
	}
	return a
}
