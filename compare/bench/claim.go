package bench

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// standing is what a claim amounts to.
type standing string

const (
	balanced   standing = "balanced"
	unbalanced standing = "not balanced"
	unproved   standing = "unproved"
)

// claim says how one rank of one arm was routed, and how that is known.
type claim struct {
	arm      Arm
	rank     int // AllRanks where the evidence covers all together, or names none
	launches int // with such evidence
	standing standing
	evidence string
}

// wantedStanding is the standing that proves an arm.
func wantedStanding(a Arm) standing {
	if a == Perfect {
		return balanced
	}
	return unbalanced
}

// doubt is how far a claim is from proving its arm: 0 proves it, 1 proves nothing,
// 2 shows the other.
func (c claim) doubt() int {
	switch c.standing {
	case wantedStanding(c.arm):
		return 0
	case unproved:
		return 1
	}
	return 2
}

// merge takes in what a further launch says about the same rank: of the two, the
// one that leaves more doubt holds.
func (c *claim) merge(o claim) {
	c.launches += o.launches
	if o.doubt() > c.doubt() {
		c.standing, c.evidence = o.standing, o.evidence
	}
}

// TracesToCome stands for the traces of a profiled pair that is still to be
// launched: what they will say is not known, so nothing is refused for lack of
// proof yet.
func (c *Campaign) TracesToCome() TraceProof {
	if !c.Spec.Design.Profiled {
		return TraceProof{}
	}
	return TraceProof{Proved: true, Evidence: "the traces of the profiled pair are to show it"}
}

// proof is the claim as evidence for or against its arm. Traces stand in where the
// launches themselves say nothing, and never against what they say.
func (c claim) proof(traces TraceProof) Proof {
	p := Proof{Arm: c.arm, Rank: router.Whole(c.rank), Proved: c.doubt() == 0, Evidence: c.evidence}
	if c.standing == unproved && traces.Evidence != "" {
		p.Proved, p.Evidence = traces.Proved, c.evidence+"; "+traces.Evidence
	}
	return p
}

// claims says, for each arm, how its ranks were routed over all counted launches,
// by rank. A launch that lacks the evidence leaves its arm unproved, and so does a
// wanted rank of which there is none.
func (c *Campaign) claims() []claim {
	var claims []claim
	printed := c.printedByPerfect()
	for _, arm := range Arms {
		launches, wanted := c.counted(arm), 0
		ranks := make(map[int]*claim)
		for _, a := range launches {
			wanted = max(wanted, c.ranks(a))
			for _, p := range c.Spec.Treatment.prove(arm, a, c.ranks(a), printed) {
				if have, ok := ranks[p.rank]; ok {
					have.merge(p)
				} else {
					ranks[p.rank] = &p
				}
			}
		}
		for _, p := range ranks {
			if p.launches < len(launches) {
				p.merge(claim{arm: arm, standing: unproved, evidence: fmt.Sprintf("evidence in %d of %d launches only: %s", p.launches, len(launches), p.evidence)})
			}
		}
		for rank := range wanted {
			if ranks[rank] == nil && ranks[AllRanks] == nil {
				ranks[rank] = &claim{arm: arm, rank: rank, standing: unproved, evidence: "no evidence of this rank"}
			}
		}
		for _, rank := range slices.Sorted(maps.Keys(ranks)) {
			claims = append(claims, *ranks[rank])
		}
	}
	return claims
}

// printedByPerfect reports whether every counted launch of the perfect arm has
// printed the treatment's line, so that a log without it tells something.
func (c *Campaign) printedByPerfect() bool {
	perfect := c.counted(Perfect)
	return len(perfect) > 0 && !slices.ContainsFunc(perfect, func(a Attempt) bool { return len(a.LinesFound) == 0 })
}

// counted are the finished attempts of an arm that enter the comparison.
func (c *Campaign) counted(arm Arm) []Attempt {
	var attempts []Attempt
	for _, l := range c.Launches {
		if a, ok := l.Done(); ok && l.Arm == arm && l.Kind == Timed {
			attempts = append(attempts, a)
		}
	}
	return attempts
}
