package proof

import (
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

// against is how far the evidence is from proving an arm: 0 measures it, 1 claims it, 2 proves nothing, 3 proves the
// other arm.
func (r rank) against(arm gain.Arm) int {
	switch {
	case r.shows == unproved:
		return 2
	case r.shows != arm:
		return 3
	case r.measured:
		return 0
	}
	return 1
}

// forRanks is the same evidence for each of so many ranks, from all of them together.
func (r rank) forRanks(ranks int) (all []rank) {
	if r.number = gain.AllRanks; ranks < 2 {
		return []rank{r}
	}
	for r.number = range ranks {
		all = append(all, r)
	}
	return all
}

// OfArm is the proof of each rank of an arm, by the worst that any of its counted launches shows. A launch that
// lacks the evidence leaves its arm unproved, and so does a wanted rank of which there is none.
func (r Rules) OfArm(arm gain.Arm, launches []Launch) (all []gain.Proof) {
	wanted, ranks := 0, make(map[int][]rank)
	for _, l := range launches {
		wanted = max(wanted, l.Ranks)
		for _, one := range r.of(arm, l) {
			if l.Name != "" {
				one.evidence = l.Name + ": " + one.evidence
			}
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
		worst := slices.MaxFunc(seen, func(a, b rank) int { return a.against(arm) - b.against(arm) })
		if len(seen) < len(launches) && worst.against(arm) < 2 {
			worst = rank{evidence: fmt.Sprintf("evidence in %d of %d launches only: %s", len(seen), len(launches),
				worst.evidence)}
		}
		proof := gain.Proof{Arm: arm, Rank: router.OptInt(number), Evidence: worst.evidence,
			Grade: []gain.Grade{gain.Measured, gain.Claimed, gain.None, gain.None}[worst.against(arm)]}
		if proof.Grade == gain.None && worst.shows == balanced {
			proof.Evidence = gain.BalancedToo + ": " + worst.evidence
		}
		all = append(all, proof)
	}
	return all
}

// Seen reports whether the proofs show that every rank saw its switch. Of a silent engine the claim of its command
// shows nothing of them.
func Seen(proofs []gain.Proof, silent bool) bool {
	return len(proofs) > 0 && !slices.ContainsFunc(proofs, func(p gain.Proof) bool {
		return p.Grade == gain.None || p.Grade == gain.Claimed && silent
	})
}
