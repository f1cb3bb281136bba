package proof

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// rank says how a rank was routed, and by what evidence.
type rank struct {
	number   int      // AllRanks where the evidence covers all together, or names none
	shows    gain.Arm // the arm whose routing the evidence shows; empty where it proves nothing
	measured bool     // by loads, not by the engine's word
	evidence string
}

// What evidence can show.
const (
	balanced   = gain.Perfect
	unbalanced = gain.Normal
	unproved   = gain.Arm("")
)

// severity is how far the evidence is from proving an arm: 0 proves it, 1 proves nothing, 2 proves the other arm.
func (r rank) severity(arm gain.Arm) int {
	switch r.shows {
	case arm:
		return 0
	case unproved:
		return 1
	}
	return 2
}

// forRanks is the same evidence for each of so many ranks, from all of them together.
func (r rank) forRanks(ranks int) (all []rank) {
	r.number = gain.AllRanks
	for number := range ranks {
		one := r
		one.number = number
		all = append(all, one)
	}
	if ranks > 1 {
		return all
	}
	return []rank{r}
}

// OfArm is the proof of each rank of an arm, by the worst that any of its counted launches shows. A launch that
// lacks the evidence leaves its arm unproved, and so does a wanted rank of which there is none.
func (r Rules) OfArm(arm gain.Arm, launches []Launch) (all []gain.Proof) {
	wanted, ranks := 0, make(map[int][]rank)
	for _, l := range launches {
		wanted = max(wanted, l.Ranks)
		for _, one := range r.of(arm, l) {
			ranks[one.number] = append(ranks[one.number], one)
		}
	}
	for number := range wanted {
		if ranks[number] == nil && ranks[gain.AllRanks] == nil {
			ranks[number] = slices.Repeat([]rank{{evidence: "no evidence of this rank"}}, len(launches))
		}
	}
	for _, number := range slices.Sorted(maps.Keys(ranks)) {
		seen := ranks[number]
		worst := slices.MaxFunc(seen, func(a, b rank) int { return cmp.Compare(a.worse(arm), b.worse(arm)) })
		if len(seen) < len(launches) && worst.severity(arm) == 0 {
			worst = rank{evidence: fmt.Sprintf("evidence in %d of %d launches only: %s", len(seen), len(launches),
				worst.evidence)}
		}
		proof := gain.Proof{Arm: arm, Rank: router.OptInt(number), Grade: gain.None, Evidence: worst.evidence}
		switch {
		case worst.severity(arm) > 0 && worst.shows == balanced:
			proof.Evidence = gain.BalancedToo + ": " + worst.evidence
		case worst.severity(arm) > 0:
		case worst.measured:
			proof.Grade = gain.Measured
		default:
			proof.Grade = gain.Claimed
		}
		all = append(all, proof)
	}
	return all
}

// worse orders evidence: of what proves the arm, a claim is worse than a measurement.
func (r rank) worse(arm gain.Arm) int {
	if r.measured {
		return 2 * r.severity(arm)
	}
	return 2*r.severity(arm) + 1
}
