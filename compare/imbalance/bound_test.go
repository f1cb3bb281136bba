package imbalance

import (
	"slices"
	"testing"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// Two layers of two ranks lose 10 and 4 ns. One rank has nobody to lose against, and no expert time no loss.
func TestLoss(t *testing.T) {
	var cells []Cell
	for step := range router.OptInt(3) {
		cells = append(cells, expertCell(0, step, 0, 30), expertCell(1, step, 0, 10), expertCell(0, step, 1, 6), expertCell(1, step, 1, 14))
	}
	x := New(cells)
	require.Near(t, "loss", x.Loss(x.Rows(0)), 14, 1e-9)
	one := New(slices.DeleteFunc(slices.Clone(cells), func(s Cell) bool { return s.Rank == 1 }))
	unnamed := slices.Clone(cells)
	for i := range cells {
		cells[i].Phase, unnamed[i].Layer = kernel.PhaseOther, router.NoID
	}
	if rows := New(unnamed).Rows(0); len(rows) != 1 || rows[0].MaxOverMean != 1.2 { // 36 and 24 of 60 ns, all as one layer
		t.Errorf("%+v", rows)
	}
	for name, x := range map[string]*Times{"one rank": one, "no expert time": New(cells), "no layer": New(unnamed)} {
		if loss := x.Loss(x.Rows(0)); loss.Defined() {
			t.Errorf("%s: %v", name, loss)
		}
	}
}

// Expert time is the time of GEMMs only where every rank that ran experts in a layer ran recognized ones.
func TestExpertTimeOf(t *testing.T) {
	for gemm, want := range map[int64]Of{7: OfGEMM, 0: OfPhase} {
		a, b := expertCell(0, 0, 0, 30), expertCell(1, 0, 0, 10)
		a.GEMMNS, a.GEMMs, b.GEMMNS, b.GEMMs = 20, 1, gemm, 1
		outside := expertCell(1, 0, router.NoID, 10)
		if x, y := New([]Cell{a, b}), New([]Cell{a, b, outside}); x.Of != want || y.Of != want {
			t.Errorf("%d ns in GEMMs of the second rank: time of %q and %q, want %q", gemm, x.Of, y.Of, want)
		}
	}
}
