package bench

import (
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
)

// prove is what a launch of so many ranks proves.
func (s Spec) prove(arm gain.Arm, v view, ranks int, printed bool) []proof.Rank {
	rules, shown := s.rules(), s.shown(v)
	rules.Printed, shown.Ranks = printed, ranks
	return rules.Of(arm, shown)
}
