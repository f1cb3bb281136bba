package main

import (
	"strings"
	"testing"
	"time"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots/page"
	"github.com/moebalance/moebalance/router"
)

// wideTrace is one arm of 61 layers with 256 experts on 64 ranks, four steps, of uneven
// and repeatable times.
func wideTrace(arm string, skew int64) *nsys.Trace {
	const ranks, layers, experts, steps = 64, 61, 256, 4
	t := &nsys.Trace{SchemaVersion: nsys.SchemaVersion, Kind: "trace", Arm: arm,
		Exports: []nsys.Export{{Path: arm + ".sqlite"}}}
	for rank := range ranks {
		t.Ranks = append(t.Ranks, nsys.Rank{Rank: rank})
	}
	for layer := range router.OptInt(layers) {
		for rank := range ranks {
			ns := 1e6 + skew*int64((rank*31+int(layer)*17)%97)
			for step := range router.OptInt(steps) {
				t.Cells = append(t.Cells, nsys.Cell{Rank: rank, Step: step, Layer: layer, Phase: nsys.PhaseExperts,
					TotalNS: ns, Instances: 2},
					nsys.Cell{Rank: rank, Step: step, Layer: layer, Phase: nsys.PhaseCombine, TotalNS: 2e5,
						CollectiveNS: 2e5, Instances: 1})
			}
		}
		for e := range experts {
			slots := 1000 + skew/100*int64((e*131+int(layer)*71)%251)
			t.Experts = append(t.Experts, nsys.ExpertStat{Rank: e / (experts / ranks), Layer: layer, Expert: e,
				Basis: imbalance.Allocated, Known: true, Slots: router.OptInt(slots), Stats: nsys.Stats{TotalNS: 100 * slots}})
		}
		row := imbalance.Row{Layer: layer, Level: router.LevelRank, Quantity: imbalance.Time, Steps: steps,
			MaxOverMean: 1.5, Imbalance: 0.5, Floor: 1, NullP95: router.Undefined(), Flagged: arm == "normal"}
		load := row
		load.Quantity = imbalance.Load
		t.Imbalance = append(t.Imbalance, row, load)
		t.Stragglers = append(t.Stragglers, imbalance.Straggler{Layer: layer, Steps: steps,
			LossNS: router.Number(skew * 50)})
	}
	return t
}

// A page of 61 layers with 256 experts on 64 ranks stays below 1.5 MB, and is made in
// seconds.
func TestReportOfManyLayersExpertsAndRanks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	begun := time.Now()
	normal, perfect := wideTrace("normal", 1e4), wideTrace("perfect", 100)
	compared := diff.Compare(normal, perfect)
	p, err := page.New("wide", nil, programsOf([]source.Item{{Name: "n", Trace: normal}, {Name: "p", Trace: perfect},
		{Name: "c", Compared: &compared}})...)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	if n := len(p.Figures()); b.Len() >= 15e5 || n < 6 {
		t.Errorf("%d bytes with %d figures, want less than 1.5 MB with all of at least 6", b.Len(), n)
	}
	t.Logf("%d bytes in %v", b.Len(), time.Since(begun))
	if took := time.Since(begun); took > 2*time.Minute {
		t.Errorf("made in %v", took)
	}
}
