package trace

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
)

// rankRows are the max/mean over ranks by layer.
func rankRows(t *Trace) map[router.OptInt]imbalance.Row {
	rows := map[router.OptInt]imbalance.Row{}
	for _, r := range t.Imbalance {
		if r.Level == router.LevelRank && r.Quantity == imbalance.Time {
			rows[r.Layer] = r
		}
	}
	return rows
}

// A capture that ends at any moment, or begins at any, gives the imbalance of the whole
// one, or a doubt.
func TestCutCaptures(t *testing.T) {
	const cuts = 18
	for _, file := range []string{"gptoss-ep4-loop/normal.sqlite", "gptoss-ep4-loop/perfect.sqlite"} {
		paths := inTestdata(t, file)
		whole, list := mustRead(t, Options{Threshold: 0.1}, paths...), recordings(paths)
		want := rankRows(whole)
		ends := make([]int64, 0, len(list[0].Kernels))
		for _, k := range list[0].Kernels {
			ends = append(ends, k.End)
		}
		slices.Sort(ends)
		judged := 0
		for cut := 1; cut <= cuts; cut++ {
			at := ends[len(ends)*cut/(cuts+1)]
			for side, lost := range map[string]func(k capture.Kernel) bool{
				"end":   func(k capture.Kernel) bool { return k.End > at },
				"begin": func(k capture.Kernel) bool { return k.Start < at },
			} {
				trace := changedAgain(t, paths, list, func(_ int, rec *capture.Recording) {
					rec.Kernels = slices.DeleteFunc(rec.Kernels, lost)
				})
				for layer, row := range rankRows(trace) {
					judged++
					if math.Abs(float64(row.MaxOverMean-want[layer].MaxOverMean)) > 0.03 && trace.Undecided().Code == "" {
						t.Errorf("%s cut at its %s, %d of %d: layer %d %.3f over %d steps, whole %.3f", file, side, cut,
							cuts, layer, row.MaxOverMean, row.Steps, want[layer].MaxOverMean)
					}
				}
			}
		}
		if judged < 3*cuts {
			t.Errorf("%s: %d rows judged", file, judged)
		}
	}
}

// A recording that holds next to nothing of the experts is no evidence.
func TestLittleEvidence(t *testing.T) {
	experts := func(steps, ranks int, ns int64) *fixture {
		f := newFixture()
		for p := range int64(ranks) {
			for step := range int64(steps) {
				at := 10_000_000 * step
				f.push(p, at, at+9_000_000, fmt.Sprintf("step %d", step))
				f.push(p, at, at+8_000_000, "layer 0 attention").work(p, 10*step+1, at+10, 4_000_000,
					"flash_fwd_kernel")
			}
			if p == 0 {
				f.push(p, 8_000_000, 9_000_000, "layer 0 experts").work(p, 900, 8_000_100, ns, "gemm")
			}
		}
		return f
	}
	for what, f := range map[string]*fixture{"one kernel": experts(2, 3, 5000), "one rank": experts(1, 3, 5_000_000)} {
		if trace := mustRead(t, Options{Threshold: 0.1}, f.write(t, "little.sqlite")); trace.Undecided().Code == "" {
			t.Errorf("%s: have %+v, no doubt", what, trace.Imbalance)
		}
	}
}
