package trace

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

func mustRead(t testing.TB, o Options, paths ...string) *Trace {
	t.Helper()
	trace := require.Value(Read(context.Background(), paths, o))
	if t, ok := t.(*testing.T); ok {
		checkConsistent(t, trace)
	}
	return trace
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: want %v, have %v", what, want, got)
	}
}

// twoRanks is one report of two processes, two steps, one layer. Expert time per
// step: rank 0 has 30 and 10, rank 1 has 10 and 30; the hot rank alternates.
// Correlation ids repeat in both processes, as real ones do.
func twoRanks() *fixture {
	f := newFixture()
	for p, times := range [][]int64{{30, 10}, {10, 30}} {
		p := int64(p)
		for step, ns := range times {
			at := int64(step) * 1000
			f.push(p, at, at+900, []string{"[Executor] _forward_step 0: 8 ctx reqs",
				"[Executor] _forward_step 1: 8 ctx reqs"}[step])
			f.push(p, at+10, at+99, "layer 0 router").work(p, 10*int64(step)+1, at+20, 4, "gate")
			f.push(p, at+100, at+400, "layer 0 experts").work(p, 10*int64(step)+2, at+110, ns, "gemm")
			f.push(p, at+500, at+700, "layer 0 combine")
			// arrives at the same time as its peer's in step 0, 5 ns later on rank 1 in
			// step 1; both ends are the same
			f.call(p, 10*int64(step)+3, at+510).kernel(p, 10*int64(step)+3, at+520+5*p*int64(step), at+560,
				"ncclDevKernel_SendRecv(x)")
		}
	}
	return f
}

func TestTwoRanksByHand(t *testing.T) {
	trace := mustRead(t, Options{Threshold: 0.1}, twoRanks().write(t, "two.sqlite"))
	hidden := twoRanks().sql("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (700,800,0,7,99,%d,1,1)", pid(0))
	require.Near(t, "idle", trace.StepTimes[0].NoKernelNS, 1000-(34+40+14+40)/2, 1e-6)
	require.Near(t, "idle", mustRead(t, Options{}, hidden.write(t, "hidden.sqlite")).StepTimes[0].NoKernelNS, math.NaN(), 1e-6)

	equal(t, "kernels", trace.Exports[0].Kernels, 12)
	equal(t, "ranks", len(trace.Ranks), 2)
	equal(t, "evidence", trace.Ranks[1].Evidence, "device ordinal")
	// 2 ranks × (4+4 gate + 30+10 gemm) + collectives 40+40 on rank 0, 40+35 on rank 1
	equal(t, "gpu time", trace.Coverage.GPUNS, 2*48+80+75)
	require.Near(t, "launch share", trace.Coverage.LaunchShare, 1, 1e-6)
	require.Near(t, "layer share", trace.Coverage.LayerShare, 1, 1e-6)

	// each step: max/mean of (30,10) = 30/20 = 1.5. The ratio of sums would be 1.
	if len(trace.Imbalance) != 1 {
		t.Fatalf("want one imbalance, have %+v", trace.Imbalance)
	}
	i := trace.Imbalance[0]
	require.Near(t, "max/mean", i.MaxOverMean, 1.5, 1e-6)
	equal(t, "steps", i.Steps, 2)
	equal(t, "worst, lowest on the tie of one step each", i.Worst, 0)
	equal(t, "flagged", i.Flagged, true)

	require.Near(t, "loss", trace.Bound.LossNS, 10, 1e-6)

	// rank 0 waits 5 in step 1, nobody waits in step 0
	for rank, wait := range []router.Number{2.5, 0} { // per step
		equal(t, "wait", trace.RankSteps[rank].WaitNS, wait)
		equal(t, "transfer", trace.RankSteps[rank].TransferNS, 37.5)
	}
	for _, p := range trace.Phases {
		if p.Phase == PhaseCombine {
			equal(t, "collective time stays in the range's phase", p.CollectiveNS, p.TotalNS)
		}
	}
	if len(trace.Cells) != 2*2*3 {
		t.Errorf("want 12 cells, have %d", len(trace.Cells))
	}
}

func TestAllocatedTimeNeedsLoadAndIsConserved(t *testing.T) {
	f := newFixture()
	f.push(0, 0, 900, "[Executor] _forward_step 0:").push(0, 100, 400, "layer 0 experts").work(0, 1, 110, 100, "gemm")
	f.push(0, 1000, 1900, "[Executor] _forward_step 1:").push(0, 1100, 1400, "layer 0 experts").work(0, 2, 1110, 11,
		"gemm")
	path := f.write(t, "one.sqlite")
	bare := mustRead(t, Options{}, path)
	if len(bare.Experts) != 0 ||
		!slices.ContainsFunc(bare.Warnings, func(w router.Warning) bool { return w.Code == "no_expert_times" }) {
		t.Errorf("want no expert times and a reason, have %v and %v", bare.Experts, bare.Warnings)
	}
	load := router.Load{PerExpert: []int64{2, 0, 6}}
	for _, held := range [][]int32{{0, 1, 2}, {2, 1, 2, 0}} { // two copies of expert 2 on one rank are one expert
		layout := require.Value(router.Placed(3, [][]int32{held}))
		trace := mustRead(t, Options{Recorded: Recorded{Layers: map[int]Counted{0: {load, layout}}}}, path)
		// step 0: 100 ns as 25, 0, 75; step 1: 11 ns as ⌊11/4⌋ = 2, 0, 9
		want := []int64{27, 0, 84}
		equal(t, "experts", len(trace.Experts), len(want))
		for i, e := range trace.Experts {
			equal(t, "basis", e.Basis, imbalance.Allocated)
			equal(t, "total", e.TotalNS, want[i])
			equal(t, "slots", int64(e.Slots), load.PerExpert[i])
			equal(t, "instances are steps", e.Instances, 2)
		}
	}
}
