package page

import (
	"fmt"
	"strings"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router"
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

// boundTable is the chain from the load that the traces show to the most that
// balance could win.
func boundTable(c diff.Comparison) table {
	k := c.Ceiling
	t := table{Caption: "Bound from the traces: gain ≤ 1/(1 − f + f·b) − 1", Columns: columns("quantity", "#value", "meaning")}
	t.add("f, expert share", quantity.Percent(k.ExpertShare), k.Of.ExpertTime()+" of each layer's slowest rank / GPU time of the step, normal arm")
	t.add("b, balancedness", k.Balancedness, "mean / slowest rank's "+k.Of.ExpertTime()+", normal arm; 1 is even")
	t.add("b of the perfect arm", k.PerfectBalancedness, "below 1 by hardware and noise")
	t.add("bound of the gain", quantity.Change(k.GainBound), "the most that even "+k.Of.ExpertTime()+" over ranks could add to throughput")
	t.add("w, expert time perfect/normal", k.ExpertWork, "mean over ranks; below 1 where equal-sized expert GEMMs run faster")
	t.add("bound with w", quantity.Change(k.GainBoundWithWork), "1/(1 − f + f·b·w) − 1")
	t.add("reduction of the step's GPU time, as a gain", quantity.Change(k.StepGain), "one launch of each arm under a profiler: an observation, not a verdict")
	return t
}

func boundSentence(c diff.Comparison) string {
	k := c.Ceiling
	text := fmt.Sprintf("By the traces, even %s over ranks could win at most %s (it is %s of the step, balancedness %s)", k.Of.ExpertTime(), quantity.Change(k.GainBound), quantity.Percent(k.ExpertShare), quantity.Ratio(k.Balancedness))
	if k.GainBoundWithWork.Defined() {
		text += fmt.Sprintf("; with the change in mean expert time, %s, at most %s", quantity.Change(k.ExpertWork-router.Number(1)), quantity.Change(k.GainBoundWithWork))
	}
	if c.Split.Known() {
		text += ". Parts of the gain: " + c.Split.Sentence() + "; " + c.Split.PlacementSentence()
	}
	return text + "."
}
