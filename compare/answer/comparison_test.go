package answer

import (
	"testing"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/router"
)

// Sides that cannot be compared are given otherwise: two files as ranks of one arm, or whole arms.
func TestOtherSides(t *testing.T) {
	side := func(arm string, exports ...string) diff.Side { return diff.Side{Arm: arm, Exports: exports} }
	refused := func(why string) []router.Warning { return []router.Warning{router.Warn("refused", "", "why", why)} }
	for _, c := range []struct {
		compared diff.Comparison
		want     string // the first command
	}{
		{diff.Comparison{Normal: side("", "a 0"), Perfect: side("", "b"), Refusals: refused("ranks")},
			"moebalance trace 'a 0' b"},
		{diff.Comparison{Normal: side("", "a", "b"), Perfect: side("", "c"), Refusals: refused("ranks")},
			wholeArms.Command},
		{diff.Comparison{Ranks: []int{0}, Normal: side("normal", "a"), Perfect: side("normal", "b"),
			Refusals: refused("arm")}, "moebalance compare --trust-arms NORMAL PERFECT"},
		{diff.Comparison{Ranks: []int{0}, Normal: side("perfect", "a"), Perfect: side("normal", "b"),
			Refusals: refused("swapped")}, "moebalance compare NORMAL PERFECT"},
		{diff.Comparison{Ranks: []int{0}, Normal: side("normal", "a"), Perfect: side("perfect", "b"),
			Refusals: refused("gates")}, "moebalance bench --profile -- YOUR_BENCHMARK"},
	} {
		if a := OfComparison(&c.compared); a.Verdict != NotComparable || a.Next[0].Command != c.want {
			t.Errorf("%s: have %+v, want %q", a.Verdict, a.Next, c.want)
		}
	}
}
