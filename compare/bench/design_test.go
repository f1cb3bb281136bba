package bench

import (
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
)

// letters writes a plan as N and P per launch, with a space between pairs.
func letters(plan []Launch) string {
	var b strings.Builder
	for _, l := range plan {
		b.WriteString(strings.ToUpper(string(l.Arm[:1])))
		if l.Place == 1 {
			b.WriteString(" ")
		}
	}
	return strings.TrimSpace(b.String())
}

func TestPlanIsTheSeeds(t *testing.T) {
	d := Design{Pairs: 6, Seed: 7}
	if a, b := letters(d.plan(gain.Arms[:], nil)), letters(d.plan(gain.Arms[:], nil)); a != b {
		t.Fatalf("the same design gave %s and %s", a, b)
	}
	other := d
	other.Seed = 8
	differs := false
	for seed := range uint64(20) {
		other.Seed = seed
		differs = differs || letters(other.plan(gain.Arms[:], nil)) != letters(d.plan(gain.Arms[:], nil))
	}
	if !differs {
		t.Error("20 seeds gave one order")
	}
	shape := strings.NewReplacer("N", "x", "P", "x").Replace(letters(d.plan(gain.Arms[:], nil)))
	if want := "xx xx xx xx xx xx"; shape != want {
		t.Errorf("the plan has the shape %q, want %q", shape, want)
	}
}

// Laws of every plan: each pair has one launch of each arm side by side, and
// over an even number of pairs each arm goes first equally often.
func TestPlansAreBalanced(t *testing.T) {
	for pairs := 1; pairs <= 25; pairs++ {
		for seed := range uint64(8) {
			d := Design{Pairs: pairs, Seed: seed}
			plan := d.plan(gain.Arms[:], nil)
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

func TestDesignCheck(t *testing.T) {
	for _, d := range []Design{
		{Pairs: 0}, {Pairs: mostPairs + 1}, {Launches: 1001},
	} {
		if d.Check() == nil {
			t.Errorf("%+v passed", d)
		}
	}
	if err := (Design{Pairs: 6}).Check(); err != nil {
		t.Error(err)
	}
}
