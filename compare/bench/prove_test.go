package bench

import (
	"strings"

	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
)

// proved is the proof of a rank, and the arm whose routing it shows; empty for none.
type proved struct {
	gain.Proof
	shows gain.Arm
}

// prove is what a launch of so many ranks proves.
func (s Spec) prove(arm gain.Arm, v view, ranks int, printed bool) (all []proved) {
	rules, shown := s.rules(), s.shown(v)
	rules.Printed, shown.Ranks = printed, ranks
	for _, p := range rules.OfArm(arm, []proof.Launch{shown}) {
		one := proved{Proof: p}
		switch {
		case p.Grade != gain.None:
			one.shows = arm
		case strings.HasPrefix(p.Evidence, gain.BalancedToo):
			one.shows = gain.Perfect
		case len(rules.OfArm(gain.Normal, []proof.Launch{shown})) > 0 && arm == gain.Perfect &&
			rules.OfArm(gain.Normal, []proof.Launch{shown})[0].Grade != gain.None:
			one.shows = gain.Normal
		}
		all = append(all, one)
	}
	return all
}
