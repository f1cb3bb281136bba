package trace

import (
	"cmp"
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
// one or none. Where only the first step is left of it, and not whole, it gives none.
func TestCutCaptures(t *testing.T) {
	const cuts = 18
	for _, file := range []string{"gptoss-ep4-loop/normal.sqlite", "gptoss-ep4-loop/perfect.sqlite"} {
		paths := inTestdata(t, file)
		whole, list := mustRead(t, Options{Threshold: 0.1}, paths...), recordings(t, paths)
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
					if math.Abs(float64(row.MaxOverMean-want[layer].MaxOverMean)) > 0.03 &&
						trace.Undecided().Code == "" || side == "end" &&
						math.Abs(float64(row.MaxOverMean-want[layer].MaxOverMean)) > 0.03 {
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

// eager gives every kernel that a graph replayed a launch of its own, in their order.
func eager(rec *capture.Recording) {
	rec.Launches = slices.Clone(rec.Launches)
	order := make([]int, len(rec.Kernels))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(rec.Kernels[a].Start, rec.Kernels[b].Start) })
	for n, i := range order {
		if k := &rec.Kernels[i]; k.GraphNode > 0 {
			l := rec.Launches[k.Launch]
			l.Start += int64(n % 1000)
			l.Operator, k.GraphNode, k.Launch = 0, 0, int32(len(rec.Launches))
			rec.Launches = append(rec.Launches, l)
		}
	}
}

// rawBalance works Σ max / Σ mean of layer 5 and over all layers out from the rows of
// fused_moe_kernel alone, of which a layer runs two: by order of launch, replays by start.
func rawBalance(list []*capture.Recording, steps []int) (fifth, all float64) {
	const perLayer, layers = 2, 12
	var times [][]float64 // by rank, and by layer over all steps
	for _, rec := range list {
		var gemms []capture.Kernel
		for _, k := range rec.Kernels {
			if rec.KernelNames[k.Name] == "fused_moe_kernel" {
				gemms = append(gemms, k)
			}
		}
		slices.SortFunc(gemms, func(a, b capture.Kernel) int {
			return cmp.Or(cmp.Compare(rec.Launches[a.Launch].Start, rec.Launches[b.Launch].Start),
				cmp.Compare(a.Start, b.Start))
		})
		own := make([]float64, len(gemms)/perLayer)
		for i, k := range gemms {
			own[i/perLayer] += float64(k.End - k.Start)
		}
		times = append(times, own)
	}
	var most, mean [2]float64
	for _, step := range steps {
		for layer := range layers {
			var largest, sum float64
			for _, own := range times {
				ns := own[step*layers+layer]
				largest, sum = max(largest, ns), sum+ns
			}
			for i, counts := range []bool{layer == 5, true} {
				if counts {
					most[i], mean[i] = most[i]+largest, mean[i]+sum/float64(len(times))
				}
			}
		}
	}
	return most[0]/mean[0] - 1, most[1]/mean[1] - 1
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
		trace := mustRead(t, Options{Threshold: 0.1}, f.write(t, "little.sqlite"))
		if trace.Undecided().Code == "" {
			t.Errorf("%s: have %+v, no doubt", what, trace.Imbalance)
		}
	}
}

// One rank's recording begins as much later as the others' end earlier, so that all hold
// equally many steps: the same step is judged on all ranks, or none is.
func TestEquallyManyStepsAtOtherTimes(t *testing.T) {
	type place struct{ rank, step, layer int }
	gemms := func(trace *Trace) map[place]int64 {
		ns := map[place]int64{}
		for _, c := range trace.Cells {
			if c.GEMMNS > 0 && c.Step.Defined() && c.Layer.Defined() {
				ns[place{c.Rank, int(c.Step), int(c.Layer)}] += c.GEMMNS
			}
		}
		return ns
	}
	for pattern, least := range map[string]int{"vllm/qwen3-normal.rank?.json.gz": 1,
		"hf-qwen3-ep4-nsys/normal.rank?.sqlite": 0} {
		paths := inTestdata(t, pattern)
		list := recordings(t, paths)
		whole := gemms(changedAgain(t, paths, list, func(_ int, rec *capture.Recording) { rec.Ranges = nil }))
		for _, cut := range []float64{0.08, 0.2, 0.25, 0.34} {
			trace := changedAgain(t, paths, list, func(rank int, rec *capture.Recording) {
				slices.SortFunc(rec.Kernels, func(a, b capture.Kernel) int { return cmp.Compare(a.Start, b.Start) })
				n := int(cut * float64(len(rec.Kernels)))
				if rec.Ranges = nil; rank == 2 {
					rec.Kernels = rec.Kernels[n:]
				} else {
					rec.Kernels = rec.Kernels[:len(rec.Kernels)-n]
				}
			})
			judged := gemms(trace)
			for at, ns := range judged {
				if trace.Doubt().Code == "" && ns != whole[at] {
					t.Errorf("%s, %.0f %% cut: %+v took %d ns, and %d in the whole capture", pattern, 100*cut, at, ns,
						whole[at])
				}
			}
			if cut < 0.3 && len(judged) < least {
				t.Errorf("%s, %.0f %% cut: no step is judged: %v", pattern, 100*cut, trace.Doubt())
			}
		}
	}
}
