package render

import (
	"testing"

	"github.com/moebalance/moebalance/compare/nsys/wait"
	"github.com/moebalance/moebalance/router"
)

// Names of templates differ far from their beginning: people see them from there.
func TestVariantTableShowsTheDifference(t *testing.T) {
	of := func(rank int, layer router.Whole, name string) wait.Variant {
		return wait.Variant{Layer: layer, Phase: "experts", Family: "lib::kernel", Rank: rank, Name: name}
	}
	table := variantTable([]wait.Variant{of(0, 0, "lib::kernel<a, Tile<64>>"), of(1, 0, "lib::kernel<a, Tile<128>>"), of(0, 1, "lib::kernel_a"), of(1, 1, "other")})
	last := len(table.Columns) - 1
	for i, want := range []string{"…64>>", "…128>>", "lib::kernel_a", "other"} {
		if have := table.Rows[i][last]; have != want {
			t.Errorf("row %d: have %q, want %q", i, have, want)
		}
	}
}

// The last part that is more than half of the waiting is named, and the rank only if it is
// last in most steps.
func TestWaitSentence(t *testing.T) {
	w := wait.Wait{Layer: 3, Steps: 4, LastRank: 2, LastSteps: 3, MostExpertRank: 2, Agrees: true, WaitNS: 1000, Parts: wait.Parts{ExpertNS: 600, HostNS: 500, UnexplainedNS: -100}}
	for want, change := range map[string]func(*wait.Wait){
		"layer 3: 1.00 µs per step, for rank 2 in 3 of 4 steps, mostly expert load":                func(*wait.Wait) {},
		"layer 3: 1.00 µs per step, for rank 2 in 3 of 4 steps; rank 1 has most expert time there": func(w *wait.Wait) { w.Parts.ExpertNS, w.MostExpertRank, w.Agrees = 400, 1, false },
		"layer 3: 1.00 µs per step, for different ranks, mostly not explained": func(w *wait.Wait) {
			w.LastSteps = 2
			w.Parts = wait.Parts{HostNS: router.Undefined(), UnexplainedNS: 1000}
		},
	} {
		changed := w
		change(&changed)
		if have := changed.Sentence("layer 3"); have != want {
			t.Errorf("have %q, want %q", have, want)
		}
	}
}
