package answer

import (
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// Sides that cannot be compared are given otherwise: two files as ranks of one arm, or whole arms.
func TestOtherSides(t *testing.T) {
	side := func(arm string, exports ...string) diff.Side { return diff.Side{Arm: arm, Exports: exports} }
	refused := func(all ...string) (list []router.Warning) {
		for _, why := range all {
			list = append(list, router.Warn("refused", "", "why", why))
		}
		return list
	}
	const record = "moebalance bench --profile -- YOUR_BENCHMARK"
	for _, c := range []struct {
		compared diff.Comparison
		want     string // the commands
	}{
		{diff.Comparison{Normal: side("", "a 0"), Perfect: side("", "b"), Refusals: refused("ranks")},
			"moebalance trace 'a 0' b; " + wholeArms.Command},
		{diff.Comparison{Normal: side("", "a", "b"), Perfect: side("", "c"), Refusals: refused("ranks")},
			wholeArms.Command},
		{diff.Comparison{Ranks: []int{0}, Normal: side("normal", "a"), Perfect: side("normal", "b"),
			Refusals: refused("arm")}, record + "; moebalance compare --trust-arms NORMAL PERFECT"},
		{diff.Comparison{Ranks: []int{0}, Normal: side("normal", "a"), Perfect: side("normal", "a"),
			Refusals: refused("same_recording", "arm")}, record}, // which trust does not mend
		{diff.Comparison{Ranks: []int{0}, Normal: side("normal", "a"), Perfect: side("normal", "b"),
			Builds: gain.Builds{"old", "new"}, Refusals: refused("layers")},
			"moebalance bench --arms old,new --profile -- YOUR_BENCHMARK"},
		{diff.Comparison{Ranks: []int{0}, Normal: side("perfect", "a"), Perfect: side("normal", "b"),
			Refusals: refused("swapped")}, "moebalance compare NORMAL PERFECT"},
		{diff.Comparison{Ranks: []int{0}, Normal: side("normal", "a"), Perfect: side("perfect", "b"),
			Refusals: refused("gates")}, record},
	} {
		a := OfComparison(&c.compared)
		var next []string
		for _, s := range a.Next {
			next = append(next, s.Command)
		}
		if have := strings.Join(next, "; "); a.Verdict != NotComparable || have != c.want {
			t.Errorf("%s: have %q, want %q", a.Verdict, have, c.want)
		}
	}
}
