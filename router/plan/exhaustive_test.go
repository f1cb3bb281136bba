//go:build exhaustive

package plan

import (
	"fmt"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// Every real shape but one is at the floors for every number of tokens.
func TestEveryNumberOfTokens(t *testing.T) {
	list := realShapes(t, router.DEP)
	if len(list) != 78 {
		t.Fatalf("%d shapes, want 78", len(list))
	}
	for _, p := range list {
		atFloors(t, p)
	}
}

// With one source ranks are one slot above the floor where tokens send two slots to
// each of few groups, and there alone.
func TestEveryNumberOfTokensTEP(t *testing.T) {
	missed := map[string]int{}
	for _, p := range realShapes(t, router.TEP) {
		proof := prove(p)
		if proof.Optimal() {
			continue
		}
		missed[fmt.Sprintf("%d experts, %d ranks", p.Shape.Experts, p.Layout.Ranks())]++
		if !proof.Valid || !proof.Level || proof.Rank.Worst != 1 || proof.Copy.Tokens+proof.Active.Tokens > 0 {
			t.Errorf("%v on %d ranks: %+v", p.Shape, p.Layout.Ranks(), proof)
		}
	}
	want := map[string]int{"256 experts, 8 ranks": 1, "160 experts, 2 ranks": 1, "160 experts, 4 ranks": 1,
		"160 experts, 8 ranks": 1}
	if fmt.Sprint(missed) != fmt.Sprint(want) {
		t.Errorf("missed %v, want %v", missed, want)
	}
}
