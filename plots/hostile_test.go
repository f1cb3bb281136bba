package plots

import (
	"testing"

	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// Times and loads below zero, huge or canceling, as a broken file may hold
// them, are left out and draw nothing outside the figure.
func TestHostileValues(t *testing.T) {
	const most = int64(1) << 62
	broken := &trace.Trace{Ranks: []trace.Rank{{Rank: -5}, {Rank: 1 << 40}}}
	for i, ns := range []int64{most, -most, 1, -1, 0} {
		broken.Cells = append(broken.Cells, trace.Cell{Rank: i - 3, Step: router.OptInt(i), Layer: router.OptInt(-i),
			Phase: trace.PhaseExperts, Sum: imbalance.Sum{TotalNS: ns, CollectiveNS: -ns / 2}})
		broken.Experts = append(broken.Experts, trace.ExpertStat{Rank: -i, Layer: router.OptInt(i), Expert: -i,
			Basis: imbalance.Observed, Slots: router.OptInt(-ns), Stats: trace.Stats{TotalNS: ns}})
		broken.RankSteps = append(broken.RankSteps, trace.RankStep{Rank: -5, WaitNS: router.Number(ns), TransferNS: 1,
			WorkNS: map[trace.Phase]router.Number{trace.PhaseExperts: router.Number(ns), "lunch": 1}})
	}
	a := Arm{"broken", broken}
	for _, f := range []Figure{HeatMap(ExpertTimes(a)), HeatMap(RankLayerTimes(a)), PhaseStacks(PhaseTimes(a))} {
		if !f.Empty() {
			checkXML(t, f.Name, render(t, f.SVG))
			checkInside(t, f)
		}
	}
}

// checkInside wants every point of every path within the figure: what reaches
// far outside can keep a rasteriser busy for ever.
func checkInside(t *testing.T, f Figure) {
	t.Helper()
	var rec recorder.Canvas
	w, h := f.size(true)
	f.draw(vgdraw.NewCanvas(&rec, w, h), true)
	for _, action := range rec.Actions {
		var path vg.Path
		switch a := action.(type) {
		case *recorder.Fill:
			path = a.Path
		case *recorder.Stroke:
			path = a.Path
		}
		for _, p := range path {
			if !(p.Pos.X >= -1 && p.Pos.X <= w+1 && p.Pos.Y >= -1 && p.Pos.Y <= h+1) {
				t.Fatalf("%s: a path reaches %v, outside %g×%g", f.Name, p.Pos, w, h)
			}
		}
	}
}
