package page

import (
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
)

// Neighbouring ranks with the same evidence share a row; a rank without a
// proof in between, other evidence, or another arm begins a new one.
func TestProofRows(t *testing.T) {
	proof := func(arm gain.Arm, rank router.Whole, grade gain.Grade, evidence string) gain.Proof {
		return gain.Proof{Arm: arm, Rank: rank, Grade: grade, Evidence: evidence}
	}
	c := &source.Campaign{Result: gain.Result{Proof: []gain.Proof{
		proof("normal", 0, gain.Measured, "a"), proof("normal", 1, gain.Measured, "a"), proof("normal", 3, gain.Measured, "a"),
		proof("perfect", 4, gain.Measured, "a"), proof("perfect", 5, gain.None, "a"), proof("perfect", 6, gain.None, "b"), proof("perfect", -1, gain.Measured, "c"),
	}}}
	var got []string
	for _, row := range proofTable(source.Item{Campaign: c}).Rows {
		got = append(got, row[0].Text+" "+row[1].Text+" "+row[2].Text)
	}
	want := []string{"normal 0 to 1 measured", "normal 3 measured", "perfect 4 measured", "perfect 5 none", "perfect 6 none", "perfect all measured"}
	if !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
}

// The arms keep their places and names whatever the order of inputs; traces
// that cannot be told apart by arm keep the names of their inputs.
func TestArmsOf(t *testing.T) {
	trace := func(arm string) *nsys.Trace { return &nsys.Trace{Arm: arm} }
	for want, inputs := range map[string][]source.Item{
		"normal perfect":     {{Name: "a", Trace: trace("perfect")}, {Name: "b", Trace: trace("normal")}},
		"perfect a b":        {{Name: "a", Trace: trace("normal")}, {Name: "b", Trace: trace("normal")}, {Name: "c", Trace: trace("perfect")}},
		"normal perfect x y": {{Name: "x", Trace: trace("")}, {Name: "p", Trace: trace("perfect")}, {Name: "y", Trace: trace("")}, {Name: "n", Trace: trace("normal")}},
		"mixed":              {{Name: "m", Trace: trace("mixed")}, {Name: "cache", Cache: cache()}},
	} {
		var got []string
		for _, a := range armsOf(inputs) {
			got = append(got, a.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("arms %q, want %q", got, want)
		}
	}
}

// The traces are compared only when they are one normal and one perfect arm,
// and not when a comparison was given.
func TestWhatIsCompared(t *testing.T) {
	normal, perfect := captures(t, "gptoss-ep4-loop/normal.sqlite"), captures(t, "gptoss-ep4-loop/perfect.sqlite")
	given := diff.Comparison{Reasons: []string{"given"}}
	for _, c := range []struct {
		name   string
		inputs []source.Item
		want   int
	}{
		{"a pair", []source.Item{{Name: "n", Trace: normal}, {Name: "p", Trace: perfect}}, 1},
		{"one arm", []source.Item{{Name: "n", Trace: normal}}, 0},
		{"the same arm twice", []source.Item{{Name: "n", Trace: normal}, {Name: "m", Trace: normal}}, 0},
		{"a pair and its comparison", []source.Item{{Name: "n", Trace: normal}, {Name: "p", Trace: perfect}, {Name: "c", Compared: &given}}, 1},
	} {
		p, _ := build(t, c.inputs...)
		if len(p.compared) != c.want {
			t.Errorf("%s: %d comparisons, want %d", c.name, len(p.compared), c.want)
		}
	}
	// Step 0 of both captures waits for ranks to arrive.
	if _, doc := build(t, source.Item{Name: "n", Trace: normal}, source.Item{Name: "p", Trace: perfect}); !strings.Contains(doc, "3 of 4 and 2 of 4 steps (warm-up excluded)") {
		t.Error("captions do not say that warm-up is excluded")
	}
}

// Figures over many layers: rank rows are not crowded out by expert rows.
func TestRankRowsStayInSight(t *testing.T) {
	trace := &nsys.Trace{Arm: "normal", Ranks: []nsys.Rank{{Rank: 0}, {Rank: 1}}}
	for layer := range router.Whole(40) {
		trace.Imbalance = append(trace.Imbalance,
			imbalance.Row{Layer: layer, Level: "expert", Quantity: "time", Imbalance: 5, MaxOverMean: 6, Flagged: true},
			imbalance.Row{Layer: layer, Level: "rank", Quantity: "time", Imbalance: 0.2, MaxOverMean: 1.2, Flagged: layer == 33})
	}
	p, _ := build(t, source.Item{Name: "x", Trace: trace})
	var tables []*table
	for _, s := range p.sections {
		for _, b := range s.Blocks {
			if s.ID == "imbalance" && b.Table != nil {
				tables = append(tables, b.Table)
			}
		}
	}
	if len(tables) != 3 || len(tables[0].Rows) != shownRows || len(tables[2].Rows) != 80 || !tables[2].Folded {
		t.Fatalf("want %d rows over ranks, %d over experts and all 80 folded", shownRows, shownRows)
	}
	if first := tables[0].Rows[0]; first[1].Text != "33" || first[2].Text != "time over ranks" {
		t.Errorf("the first row is %v, want the flagged layer 33 over ranks", first)
	}
}
