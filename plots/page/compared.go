package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// comparisons are those given, and, where none is, that of the traces when one
// is the normal and one the perfect arm.
func comparisons(arms []plots.Arm, inputs []Input) (out []diff.Comparison) {
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
func changeColumns(of ...column) []column {
	return slices.Concat(of, numeric("normal", "perfect", "difference", "of normal"))
}

func changeCells(c diff.Change) []any {
	return []any{duration(c.NormalNS), duration(c.PerfectNS), signed(c.DifferenceNS), change(c.DifferenceNS / c.NormalNS)}
}

// signed writes a difference of times with its sign.
func signed(ns router.Number) string {
	if ns > 0 {
		return "+" + duration(ns)
	}
	return duration(ns)
}

// phaseChanges says in which phases the arms differ.
func phaseChanges(c diff.Comparison) table {
	t := table{
		Caption: "Where the arms differ: time per step, mean over ranks (observed)",
		Columns: slices.Concat(changeColumns(text("phase", "kind")...), numeric("slowest rank, normal", "slowest rank, perfect")),
	}
	for _, p := range c.Phases {
		kind := "work"
		if p.Collective {
			kind = "collectives, wait and transfer"
		}
		cells := append([]any{string(p.Phase), kind}, changeCells(p.Change)...)
		t.Rows = append(t.Rows, row(append(cells, duration(p.NormalSlowestNS), duration(p.PerfectSlowestNS))...))
	}
	if len(t.Rows) > 0 {
		t.Rows = append(t.Rows, row(append(append([]any{"GPU time of the step", "all"}, changeCells(c.Step)...), missing, missing)...))
	}
	return t
}

// lossChanges says which layers lose less to their slowest rank.
func lossChanges(c diff.Comparison) table {
	t := table{Caption: "Straggler loss per step and layer, over the ranks and steps compared", Columns: changeColumns(numeric("layer")...)}
	for _, s := range c.Stragglers {
		t.Rows = append(t.Rows, row(append([]any{layerName(s.Layer)}, changeCells(s.Change)...)...))
	}
	t.Folded = len(t.Rows) > shownRows
	return t
}

func layerName(n router.Whole) string {
	if !n.Defined() {
		return "outside"
	}
	return number(n)
}

// rankSpeeds separates what a rank's hardware costs from what its load costs.
func rankSpeeds(c diff.Comparison) table {
	t := table{
		Caption: "Load or hardware: each rank's expert work against the mean rank's",
		Columns: numeric("rank", "normal", "perfect", "hardware (perfect over its mean)", "load (normal with the hardware divided out)"),
	}
	for _, r := range c.RankSpeeds {
		t.Rows = append(t.Rows, row(r.Rank, duration(r.NormalNS), duration(r.PerfectNS), r.Hardware, r.Load))
	}
	t.Folded = len(t.Rows) > 2*shownRows
	return t
}

// ceilingTable is the chain from the load that the traces show to the most that
// balance could win.
func ceilingTable(c diff.Comparison) table {
	k := c.Ceiling
	t := table{Caption: "The bound from the traces: gain ≤ 1/(1 − f + f·b) − 1", Columns: slices.Concat(text("quantity"), numeric("value"), text("meaning"))}
	t.Rows = [][]cell{
		row("f, expert share", share(k.ExpertShare), "expert work of each layer's slowest rank over the GPU time of a step, normal arm"),
		row("b, balancedness", k.Balancedness, "mean over slowest rank's expert work, normal arm; 1 is even"),
		row("b of the perfect arm", k.PerfectBalancedness, "what hardware and noise leave below 1"),
		row("bound of the gain", change(k.GainBound), "the most that evening out expert work over the ranks could add to throughput"),
		row("w, mean expert work, perfect over normal", k.ExpertWork, "1 if load only moved; below 1, experts of equal size fill the kernels better"),
		row("bound with the change in work", change(k.GainBoundWithWork), "1/(1 − f + f·b·w) − 1"),
		row("fall of the step's GPU time, as a gain", change(k.StepGain), "one launch of each arm under a profiler: an observation, no verdict"),
	}
	return t
}

func ceilingSentence(c diff.Comparison) string {
	k := c.Ceiling
	text := fmt.Sprintf("By the traces, evening out expert work over the ranks could win at most %s (experts are %s of the step, balancedness %s)", change(k.GainBound), share(k.ExpertShare), ratio(k.Balancedness))
	if k.GainBoundWithWork.Defined() {
		text += fmt.Sprintf("; with the mean rank's expert work changed as well, by %s, at most %s", change(k.ExpertWork-1), change(k.GainBoundWithWork))
	}
	return text + "."
}
