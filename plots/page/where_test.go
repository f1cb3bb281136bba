package page

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router"
)

// The times by phase are those of the comparison below them: a rank or a step
// that one arm lacks stays out of both.
func TestPhasesAgreeWithTheComparison(t *testing.T) {
	normal, whole := captures(t, "deepseek-ep4-ranks/normal.*.sqlite"), captures(t, "deepseek-ep4-ranks/perfect.*.sqlite")
	for name, lacks := range map[string]func(nsys.Cell) bool{
		"nothing":             func(nsys.Cell) bool { return false },
		"a rank":              func(c nsys.Cell) bool { return c.Rank == 3 },
		"a layer of it":       func(c nsys.Cell) bool { return c.Rank == 3 && c.Step == 2 && c.Layer == 1 },
		"the last step of it": func(c nsys.Cell) bool { return c.Rank == 3 && c.Step == 3 },
	} {
		perfect := *whole
		perfect.Cells = slices.DeleteFunc(slices.Clone(whole.Cells), lacks)
		p, _ := build(t, Input{Name: "n", Trace: normal}, Input{Name: "p", Trace: &perfect})
		var ofPhases, ofComparison []string
		byPhase := phaseTable(plots.PhaseTimes(p.arms...))
		if said := strings.Contains(byPhase.Caption, "mean over the 3 ranks that every arm has"); said != (name == "a rank") {
			t.Errorf("perfect without %s: the table is %q", name, byPhase.Caption)
		}
		for _, row := range byPhase.Rows {
			ofPhases = append(ofPhases, strings.Join([]string{row[0].Text, row[1].Text, row[2].Text}, " "))
		}
		for _, row := range phaseChanges(p.compared[0]).Rows {
			if row[1].Text == "work" {
				ofComparison = append(ofComparison, strings.Join([]string{row[0].Text, row[2].Text, row[3].Text}, " "))
			}
		}
		if len(ofComparison) != 5 || !slices.Equal(slices.Sorted(slices.Values(ofPhases[:5])), slices.Sorted(slices.Values(ofComparison))) {
			t.Errorf("perfect without %s: by phase %q, compared %q", name, ofPhases, ofComparison)
		}
	}
}

// The losses are those of the comparison below them: what a layer loses in a step of
// start-up is in neither.
func TestLossesAgreeWithTheComparison(t *testing.T) {
	normal, perfect := captures(t, "deepseek-ep4-ranks/normal.*.sqlite"), captures(t, "deepseek-ep4-ranks/perfect.*.sqlite")
	for i := range normal.Cells {
		if c := &normal.Cells[i]; c.Step == 0 && c.Rank == 1 {
			c.TotalNS += 1e9 // as no other step has it
		}
	}
	p, text := build(t, Input{Name: "n", Trace: normal}, Input{Name: "p", Trace: perfect})
	var compared [2]router.Number
	for _, s := range p.compared[0].Stragglers {
		if s.Layer.Defined() { // the time outside layers is no layer's
			compared[0] += s.Change.NormalNS
			compared[1] += s.Change.PerfectNS
		}
	}
	for i, a := range p.arms {
		lost, _ := imbalance.TotalLoss(a.Stragglers())
		if math.Abs(float64(lost/compared[i]-1)) > 1e-12 || !strings.Contains(text, typeset(duration(lost))+" per step to its slowest ranks") {
			t.Errorf("%s loses %v, compared %v", a.Name, lost, compared[i])
		}
	}
}

// Where no layer's loss is known, nothing is lost "0 ns".
func TestUnknownLoss(t *testing.T) {
	nan := router.Undefined()
	trace := &nsys.Trace{Arm: "normal", Stragglers: []imbalance.Straggler{{Layer: 1, LossNS: nan, MeanNS: nan}, {Layer: 2, LossNS: nan, MeanNS: nan}}}
	if lost, mean := imbalance.TotalLoss(trace.Stragglers); lost.Defined() || mean.Defined() {
		t.Errorf("lost %v of %v, want neither defined", lost, mean)
	}
	trace.Stragglers[1] = imbalance.Straggler{Layer: 2, LossNS: 30, MeanNS: 200}
	if lost, mean := imbalance.TotalLoss(trace.Stragglers); lost != 30 || mean != 200 {
		t.Errorf("lost %v of %v, want 30 of 200: layer 1 is unknown", lost, mean)
	}
}

// Statistics that add up passes give no time per slot, also not in the table.
func TestNoTimePerSlotOfWindows(t *testing.T) {
	trace := &nsys.Trace{Arm: "normal", Ranks: []nsys.Rank{{Rank: 0}}, Warnings: []router.Warning{{Code: "counts_window", Text: "sums"}}}
	for layer := range 3 {
		trace.Experts = append(trace.Experts, nsys.ExpertStat{Layer: router.Whole(layer), Basis: imbalance.Observed, Known: true, Slots: int64(10 * (layer + 1)), Stats: nsys.Stats{TotalNS: int64(70 * (layer + 1))}})
		trace.Imbalance = append(trace.Imbalance, imbalance.Row{Layer: router.Whole(layer), Level: router.LevelExpert, Quantity: imbalance.Load, Steps: 1})
	}
	cells := func() []cell {
		s, err := Page{arms: []plots.Arm{{Name: "normal", Trace: trace}}}.timeLoad()
		if err != nil || len(s.Blocks) != 2 {
			t.Fatalf("%d blocks, %v: want a figure and its table", len(s.Blocks), err)
		}
		return s.Blocks[1].Table.Rows[0]
	}
	if got := cells()[2].Text; got != missing {
		t.Errorf("time per slot of windows %q", got)
	}
	trace.Warnings = nil
	if got := cells()[2].Text; got != "7.00\u00a0ns" {
		t.Errorf("time per slot %q, want 7 ns", got)
	}
}

// What to do next speaks of layers only where the page names some, and of the
// gain as an estimate with its interval, never as a most.
func TestNextStepRestsOnThePage(t *testing.T) {
	const hot = "the hot experts of the layers named above"
	trace := captures(t, "gptoss-ep4-loop/normal.sqlite")
	_, alone := build(t, Input{Name: "bench.json", Campaign: campaign(0.2)})
	_, traced := build(t, Input{Name: "bench.json", Campaign: campaign(0.2)}, Input{Name: "n", Trace: trace})
	if strings.Contains(alone, hot) || !strings.Contains(traced, hot) {
		t.Error("layers are named above exactly where there is a trace: the advice does not follow that")
	}
	c := campaign(0.2)
	c.Gain.Estimate, c.Gain.Low, c.Gain.High = 0.23, 0.187, 0.26
	text := Page{}.afterVerdict(c)
	if want := "perfect balance wins about +23.0 % of throughput (+18.7 % to +26.0 % with 96.9 % confidence)"; !strings.Contains(strings.ReplaceAll(text, "\u00a0", " "), want) {
		t.Errorf("%q, want %q", text, want)
	}
	if c.Verdict != gain.Significant {
		t.Fatalf("verdict %s", c.Verdict)
	}
}
