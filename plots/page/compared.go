package page

import (
	"fmt"
	"strings"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router/quantity"
)

// comparisons are those given, and, where none is, that of the traces when one
// is the normal and one the perfect arm.
func comparisons(arms []plots.Arm, inputs []source.Item) (out []diff.Comparison) {
	for _, in := range inputs {
		if in.Compared != nil {
			out = append(out, *in.Compared)
		}
	}
	named := len(arms) == 2 && arms[0].Name == string(gain.Normal) && arms[1].Name == string(gain.Perfect)
	if len(out) == 0 && named {
		out = append(out, diff.Compare(arms[0].Trace, arms[1].Trace))
	}
	return out
}

// comparedSentence says whether the traces are a pair of arms.
func comparedSentence(c diff.Comparison) string {
	if !c.Comparable {
		return "The traces cannot be compared as two arms: " + strings.Join(c.Reasons, "; ") + "."
	}
	return fmt.Sprintf("The traces are a pair of arms over %s and %s.", quantity.Count(len(c.Ranks), "rank"), quantity.Count(len(c.Layers), "layer"))
}

// changeColumns head a table of times in both arms.
func changeColumns(of ...string) []column {
	return columns(append(of, "#normal", "#perfect", "#difference", "#of normal")...)
}

// changeCells are the cells below them.
func changeCells(c diff.Change, of ...any) []any {
	difference := quantity.Duration(c.DifferenceNS)
	if c.DifferenceNS > 0 {
		difference = "+" + difference
	}
	return append(of, quantity.Duration(c.NormalNS), quantity.Duration(c.PerfectNS), difference, quantity.Change(c.DifferenceNS/c.NormalNS))
}

// phaseChanges says in which phases the arms differ.
func phaseChanges(c diff.Comparison) table {
	t := table{
		Caption: "Time per step by phase in both arms, mean over ranks (observed)",
		Columns: append(changeColumns("phase", "kind"), columns("#slowest rank, normal", "#slowest rank, perfect")...),
	}
	for _, p := range c.Phases {
		kind := "work"
		if p.Collective {
			kind = "collectives, wait and transfer"
		}
		t.add(append(changeCells(p.Change, string(p.Phase), kind), quantity.Duration(p.NormalSlowestNS), quantity.Duration(p.PerfectSlowestNS))...)
	}
	if len(t.Rows) > 0 {
		t.add(append(changeCells(c.Step, "GPU time of the step", "all"), quantity.Unknown, quantity.Unknown)...)
	}
	return t
}

// lossChanges says which layers lose less to their slowest rank.
func lossChanges(c diff.Comparison) table {
	t := table{Caption: "Straggler loss per step and layer, over the ranks and steps compared", Columns: changeColumns("#layer"), Folded: len(c.Stragglers) > shownRows}
	for _, s := range c.Stragglers {
		t.add(changeCells(s.Change, s.Layer)...)
	}
	return t
}

// rankSpeeds separates what a rank's hardware costs from what its load costs.
func rankSpeeds(c diff.Comparison) table {
	t := table{
		Caption: "Load or hardware: expert time of each rank relative to the mean rank", Folded: len(c.RankSpeeds) > 2*shownRows,
		Columns: columns("#rank", "#normal", "#perfect", "#hardware (perfect/mean)", "#load (normal, hardware divided out)"),
	}
	for _, r := range c.RankSpeeds {
		t.add(r.Rank, quantity.Duration(r.NormalNS), quantity.Duration(r.PerfectNS), r.Hardware, r.Load)
	}
	return t
}

// partsTable is what the gain is made of; empty where none is predicted.
func partsTable(s diff.Split) table {
	t := table{Caption: "Parts of the gain, predicted from the traces: time saved per step / step of the perfect arm", Columns: columns("part", "#saved", "#gain", "#low", "#high")}
	for _, p := range s.Parts {
		t.add(string(p.Name), quantity.Duration(p.SavedNS), quantity.Change(p.Gain), quantity.Change(p.Low), quantity.Change(p.High))
	}
	return t
}

// boundSentence is what the gain is made of and what a placement can reach of it; where no
// step time is known, the bound by GPU time.
func boundSentence(c diff.Comparison) string {
	if c.Split.Known() {
		return "Parts of the gain: " + c.Split.Sentence() + "; " + c.Split.PlacementSentence() + "."
	}
	return "By the traces, " + c.Ceiling.Sentence() + "."
}
