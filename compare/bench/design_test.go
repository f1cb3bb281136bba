package bench

import (
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
)

// Laws of every plan: each pair has one launch of each arm side by side, and
// over an even number of pairs each arm goes first equally often.
func TestPlansAreBalanced(t *testing.T) {
	for pairs := 1; pairs <= 25; pairs++ {
		for seed := range uint64(8) {
			d := Design{Pairs: pairs, Seed: seed}
			plan := (Spec{Design: d}).plan()
			if want := 2 * d.Pairs; len(plan) != want {
				t.Fatalf("%v: %d launches, want %d", d, len(plan), want)
			}
			normalFirst := 0
			var blocks []gain.Arm
			for i, l := range plan {
				if l.Position != i {
					t.Fatalf("%v: position %d at %d", d, l.Position, i)
				}
				if l.Place != 0 {
					continue
				}
				if next := plan[i+1]; next.Pair != l.Pair || next.Arm == l.Arm || next.Place != 1 {
					t.Fatalf("%v: %+v is followed by %+v", d, l, next)
				}
				if l.Arm == gain.Normal {
					normalFirst++
				}
				blocks = append(blocks, l.Arm)
			}
			if diff := 2*normalFirst - pairs; diff < -1 || diff > 1 {
				t.Errorf("%v: normal first in %d of %d pairs", d, normalFirst, pairs)
			}
			for i := 0; i+1 < len(blocks); i += 2 {
				if blocks[i] == blocks[i+1] {
					t.Errorf("%v: pairs %d and %d start with the same arm", d, i, i+1)
				}
			}
		}
	}
}
