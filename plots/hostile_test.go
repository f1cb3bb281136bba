package plots

import (
	"io"
	"testing"
	"time"

	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

// Times and loads below zero, huge or cancelling, as a broken file may hold
// them, are left out and do not keep the drawing busy for ever.
func TestHostileValues(t *testing.T) {
	const most = int64(1) << 62
	trace := &nsys.Trace{Ranks: []nsys.Rank{{Rank: -5}, {Rank: 1 << 40}}}
	for i, ns := range []int64{most, -most, 1, -1, 0} {
		trace.Cells = append(trace.Cells, nsys.Cell{Rank: i - 3, Step: i, Layer: -i, Phase: nsys.PhaseExperts, TotalNS: ns, CollectiveNS: -ns / 2})
		trace.Experts = append(trace.Experts, nsys.ExpertStat{Rank: -i, Layer: i, Expert: -i, Basis: nsys.Observed, Known: true, Slots: -ns, Stats: nsys.Stats{TotalNS: ns}})
		trace.Stragglers = append(trace.Stragglers, nsys.StragglerStat{Layer: i, LossNS: router.Number(1e300 * float64(i-2))})
		trace.Collectives = append(trace.Collectives, nsys.CollectiveStat{Rank: 7 * i, TotalNS: 1, WaitNS: router.Number(ns), TransferNS: 1})
	}
	a := Arm{Name: "broken", Trace: trace}
	done := make(chan bool)
	go func() {
		defer close(done)
		for _, draw := range []func() (Figure, error){
			func() (Figure, error) { return HeatMap(ExpertTimes(a)) },
			func() (Figure, error) { return HeatMap(ExpertLoads(a)) },
			func() (Figure, error) { return HeatMap(RankLayerTimes(a)) },
			func() (Figure, error) { return BarChart(RankTimes(a)) },
			func() (Figure, error) { return BarChart(RankLoads(a)) },
			func() (Figure, error) { return BarChart(LayerLosses(a)) },
			func() (Figure, error) { return PhaseStacks(PhaseTimes(a)) },
			func() (Figure, error) { return StepLines(StepTimes(a)) },
			func() (Figure, error) { return Scatter(TimeAgainstLoad(a)) },
		} {
			if f, err := draw(); err == nil {
				if err := f.PNG(io.Discard); err != nil {
					t.Error(err)
				}
				checkXML(t, f.Name, f.Inline())
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("a figure of hostile values is still being drawn")
	}
}
