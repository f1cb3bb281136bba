package bench

import (
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
)

// prove is what an attempt of so many ranks proves.
func (s Spec) prove(arm gain.Arm, a Attempt, ranks int, printed bool) []proof.Rank {
	rules, shown := s.rules(), s.shown(a)
	rules.Printed, shown.Ranks = printed, ranks
	return rules.Of(arm, shown)
}
