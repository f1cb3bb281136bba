package page

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
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
		p, _ := build(t, source.Item{Name: "n", Trace: normal}, source.Item{Name: "p", Trace: &perfect})
		var ofPhases, ofComparison []string
		byPhase := phaseTable(p.arms, "per step")
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

// The losses are those of the comparison below them and the gaps between the lines
// of the steps: one number, whichever the page shows. What a layer loses in a step of
// warm-up is in none of them.
func TestLossesAgree(t *testing.T) {
	normal, perfect := captures(t, "deepseek-ep4-ranks/normal.*.sqlite"), captures(t, "deepseek-ep4-ranks/perfect.*.sqlite")
	loop, looped := captures(t, "gptoss-ep4-loop/normal.sqlite"), captures(t, "gptoss-ep4-loop/perfect.sqlite")
	for _, traces := range [][2]*nsys.Trace{{normal, perfect}, {loop, looped}} {
		p, text := build(t, source.Item{Name: "n", Trace: traces[0]}, source.Item{Name: "p", Trace: traces[1]})
		steps, c := plots.StepTimes(p.arms...), p.compared[0]
		for i, compared := range []router.Number{c.Ceiling.StragglerLoss.NormalNS, c.Ceiling.StragglerLoss.PerfectNS} {
			name := p.arms[i].Name
			lost, _ := imbalance.TotalLoss(traces[i].Stragglers)
			byLayer := router.Number(0)
			for _, s := range c.Stragglers {
				byLayer += []router.Number{s.Change.NormalNS, s.Change.PerfectNS}[i]
			}
			for what, have := range map[string]router.Number{"compared": compared, "compared by layer": byLayer} {
				if math.Abs(float64(lost/have-1)) > 1e-12 {
					t.Errorf("%s loses %v, %s %v", name, lost, what, have)
				}
			}
			written := quantity.Duration(lost) + " per step"
			if !strings.Contains(steps.Alt, name+": "+written) || !strings.Contains(text, typeset("Straggler loss of "+name+" is "+written)) {
				t.Errorf("%s loses %s: the steps say %q", name, written, steps.Alt)
			}
		}
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
		s := Page{arms: []plots.Arm{plots.NewArm("normal", trace)}}.timeLoad()
		if s.err != nil || len(s.Blocks) != 2 {
			t.Fatalf("%d blocks, %v: want a figure and its table", len(s.Blocks), s.err)
		}
		return s.Blocks[1].Table.Rows[0]
	}
	if got := cells()[2].Text; got != quantity.Unknown {
		t.Errorf("time per slot of windows %q", got)
	}
	trace.Warnings = nil
	if got := cells()[2].Text; got != "7.00 ns" {
		t.Errorf("time per slot %q, want 7 ns", got)
	}
}

// What to do next advises to place experts only where traces of both arms show that this
// alone wins more than the threshold, and speaks of the gain as an estimate with its
// interval, never as a most.
func TestNextStepRestsOnThePage(t *testing.T) {
	compared := diff.Compare(captures(t, "gptoss-ep4-loop/normal.sqlite"), captures(t, "gptoss-ep4-loop/perfect.sqlite"))
	bound := compared.Split.Placement.GainBound.Float64()
	if !(bound > 0.02 && bound < 0.1) {
		t.Fatalf("a placement wins %v alone", bound)
	}
	const advised, against = ": place the experts with 'moebalance place'", ": do not expect it from placing experts"
	for _, c := range []struct {
		threshold         float64
		compared          []diff.Comparison
		advised, advisory bool
	}{{bound / 2, []diff.Comparison{compared}, true, false}, {2 * bound, []diff.Comparison{compared}, false, true}, {0.1, nil, false, false}, {0.1, []diff.Comparison{{}}, false, false}} {
		text := Page{compared: c.compared}.afterPlacement(c.threshold)
		if strings.Contains(text, advised) != c.advised || strings.Contains(text, against) != c.advisory || !c.advised && !c.advisory && !strings.Contains(text, "run 'moebalance compare'") {
			t.Errorf("threshold %v of %v: %q", c.threshold, bound, text)
		}
	}
	c := campaign(0.2)
	c.Gain.Estimate, c.Gain.Low, c.Gain.High = 0.23, 0.187, 0.26
	text := Page{}.afterVerdict(c)
	if want := "perfect balance wins about +23.0 % of throughput (+18.7 % to +26.0 % with 95.0 % confidence)"; !strings.Contains(strings.ReplaceAll(text, "\u00a0", " "), want) {
		t.Errorf("%q, want %q", text, want)
	}
	if c.Verdict != gain.Significant {
		t.Fatalf("verdict %s", c.Verdict)
	}
}
