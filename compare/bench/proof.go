package bench

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// proofStatus is what evidence shows about routing.
type proofStatus string

const (
	balanced   proofStatus = "balanced"
	unbalanced proofStatus = "not balanced"
	unproved   proofStatus = "unproved"
)

// rankProof says how one rank of one arm was routed, and by what evidence.
type rankProof struct {
	arm      gain.Arm
	rank     int // AllRanks where the evidence covers all together, or names none
	launches int // with such evidence
	status   proofStatus
	measured bool // by loads, not by the engine's word
	evidence string
}

// severity is how far a proof is from proving its arm: 0 proves it, 1 proves nothing,
// 2 proves the other arm.
func (p rankProof) severity() int {
	wanted := unbalanced
	if p.arm == gain.Perfect {
		wanted = balanced
	}
	switch p.status {
	case wanted:
		return 0
	case unproved:
		return 1
	}
	return 2
}

// merge adds what a further launch shows about the same rank: of the two, the more
// severe one holds.
func (p *rankProof) merge(o rankProof) {
	p.launches += o.launches
	if o.severity() > p.severity() || o.severity() == p.severity() && p.measured && !o.measured {
		p.status, p.evidence = o.status, o.evidence
	}
	p.measured = p.measured && o.measured
}

// TracesToCome stands for the traces of a profiled pair that is still to be
// launched, so that nothing is refused for lack of proof yet.
func (c *Campaign) TracesToCome() gain.TraceProof {
	if !c.Spec.Design.Profiled {
		return gain.TraceProof{}
	}
	return gain.TraceProof{Proved: true, Evidence: "the traces of the profiled pair are still to come"}
}

// proof is the evidence for or against the arm. Traces measure what the launches only
// claim or say nothing about, and never speak against what they show.
func (p rankProof) proof(traces gain.TraceProof) gain.Proof {
	proof := gain.Proof{Arm: p.arm, Rank: router.Whole(p.rank), Grade: gain.None, Evidence: p.evidence}
	switch {
	case p.severity() == 0 && p.measured:
		proof.Grade = gain.Measured
		return proof
	case p.severity() == 0:
		proof.Grade = gain.Claimed
	case p.severity() == 2:
		return proof
	}
	if traces.Evidence != "" {
		proof.Evidence += "; " + traces.Evidence
	}
	if traces.Proved {
		proof.Grade = gain.Measured
	}
	return proof
}

// rankProofs says, for each arm, how its ranks were routed over all counted launches,
// by rank. A launch that lacks the evidence leaves its arm unproved, and so does a
// wanted rank of which there is none.
func (c *Campaign) rankProofs() []rankProof {
	var proofs []rankProof
	printed := c.printedByPerfect()
	for _, arm := range gain.Arms {
		launches, wanted := c.counted(arm), 0
		ranks := make(map[int]*rankProof)
		for _, a := range launches {
			wanted = max(wanted, c.ranks(a))
			for _, p := range c.Spec.prove(arm, a, c.ranks(a), printed) {
				if have, ok := ranks[p.rank]; ok {
					have.merge(p)
				} else {
					ranks[p.rank] = &p
				}
			}
		}
		for _, p := range ranks {
			if p.launches < len(launches) {
				p.merge(rankProof{arm: arm, status: unproved,
					evidence: fmt.Sprintf("evidence in %d of %d launches only: %s", p.launches, len(launches),
						p.evidence)})
			}
		}
		for rank := range wanted {
			if ranks[rank] == nil && ranks[gain.AllRanks] == nil {
				ranks[rank] = &rankProof{arm: arm, rank: rank, status: unproved, evidence: "no evidence of this rank"}
			}
		}
		for _, rank := range slices.Sorted(maps.Keys(ranks)) {
			proofs = append(proofs, *ranks[rank])
		}
	}
	return proofs
}

// ranks is how many ranks a launch must prove: those of the spec, else those that its
// report names, else its proof lines; 0 if unknown.
func (c *Campaign) ranks(a Attempt) int {
	ranks := c.Spec.Ranks
	if ranks == 0 && a.Result != nil {
		ranks = a.Result.Proof.Ranks
	}
	if ranks == 0 {
		for _, f := range a.LinesFound {
			ranks = max(ranks, f.Ranks)
		}
		for _, o := range a.Orders {
			ranks = max(ranks, o.Ranks)
		}
	}
	return ranks
}

// printedByPerfect reports whether every counted launch of the perfect arm has
// printed the proof line, so that its absence from a log is evidence.
func (c *Campaign) printedByPerfect() bool {
	perfect := c.counted(gain.Perfect)
	return len(perfect) > 0 && !slices.ContainsFunc(perfect, func(a Attempt) bool { return len(a.LinesFound) == 0 })
}

// counted are the finished attempts of an arm that enter the comparison.
func (c *Campaign) counted(arm gain.Arm) []Attempt {
	var attempts []Attempt
	for _, l := range c.Launches {
		a, ok := l.Done()
		switch {
		case !ok || l.Kind != Timed:
		case c.Spec.Design.Within():
			attempts = append(attempts, a.underOrders(arm)...)
		case l.Arm == arm:
			attempts = append(attempts, a.views()...)
		}
	}
	return attempts
}
