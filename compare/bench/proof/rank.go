package proof

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// Rank says how one rank of one arm was routed, and by what evidence.
type Rank struct {
	Arm      gain.Arm
	Rank     int      // AllRanks where the evidence covers all together, or names none
	Launches int      // with such evidence
	Shows    gain.Arm // the arm whose routing the evidence shows; empty where it proves nothing
	Measured bool     // by loads, not by the engine's word
	Evidence string
}

// What evidence can show.
const (
	balanced   = gain.Perfect
	unbalanced = gain.Normal
	unproved   = gain.Arm("")
)

// Severity is how far the evidence is from proving its arm: 0 proves it, 1 proves nothing,
// 2 proves the other arm.
func (p Rank) Severity() int {
	switch p.Shows {
	case p.Arm:
		return 0
	case unproved:
		return 1
	}
	return 2
}

// merge adds what a further launch shows about the same rank: of the two, the more
// severe one holds.
func (p *Rank) merge(o Rank) {
	p.Launches += o.Launches
	if o.Severity() > p.Severity() || o.Severity() == p.Severity() && p.Measured && !o.Measured {
		p.Shows, p.Evidence = o.Shows, o.Evidence
	}
	p.Measured = p.Measured && o.Measured
}

// Graded is the proof for or against the arm.
func (p Rank) Graded() gain.Proof {
	graded := gain.Proof{Arm: p.Arm, Rank: router.OptInt(p.Rank), Grade: gain.None, Evidence: p.Evidence}
	switch {
	case p.Severity() == 0 && p.Measured:
		graded.Grade = gain.Measured
	case p.Severity() == 0:
		graded.Grade = gain.Claimed
	case p.Shows == balanced:
		graded.Evidence = gain.BalancedToo + ": " + p.Evidence
	}
	return graded
}

// forRanks is the same evidence for each of so many ranks, from all of them together.
func (p Rank) forRanks(ranks int) []Rank {
	if ranks <= 1 {
		p.Rank = gain.AllRanks
		return []Rank{p}
	}
	of := slices.Repeat([]Rank{p}, ranks)
	for rank := range of {
		of[rank].Rank = rank
	}
	return of
}

// OfArm says how the ranks of an arm were routed over all its counted launches, by rank. A launch that
// lacks the evidence leaves its arm unproved, and so does a wanted rank of which there is none.
func (r Rules) OfArm(arm gain.Arm, launches []Launch) (all []Rank) {
	wanted, ranks := 0, make(map[int]*Rank)
	for _, l := range launches {
		wanted = max(wanted, l.Ranks)
		for _, p := range r.Of(arm, l) {
			if have, ok := ranks[p.Rank]; ok {
				have.merge(p)
			} else {
				ranks[p.Rank] = &p
			}
		}
	}
	for _, p := range ranks {
		if p.Launches < len(launches) {
			p.merge(Rank{Arm: arm, Shows: unproved, Evidence: fmt.Sprintf("evidence in %d of %d launches only: %s",
				p.Launches, len(launches), p.Evidence)})
		}
	}
	for rank := range wanted {
		if ranks[rank] == nil && ranks[gain.AllRanks] == nil {
			ranks[rank] = &Rank{Arm: arm, Rank: rank, Shows: unproved, Evidence: "no evidence of this rank"}
		}
	}
	for _, rank := range slices.Sorted(maps.Keys(ranks)) {
		all = append(all, *ranks[rank])
	}
	return all
}
