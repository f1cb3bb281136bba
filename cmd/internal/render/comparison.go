package render

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Comparison lays a comparison out for people; JSON carries it as
// it is.
func Comparison(r diff.Comparison) output.Document {
	return output.Document{
		Headline: comparisonHeadline(r),
		Tables: []output.Table{
			changedPhases(r), changedLayers(r), changedLosses(r), changedRanks(r), speedTable(r), ceilingTable(r),
			balanceChangeTable(r), stepComparisonTable(r), activeTable(r), familyTable(r),
		},
		Notes: warningNotes(r.Warnings),
		Value: r,
	}
}

// ComparisonOverview is what people see who asked for no table: where the
// difference is, and what explains it.
func ComparisonOverview(r diff.Comparison) output.Document {
	d := Comparison(r)
	d.Tables = nil
	if !r.Comparable {
		d.Notes = append(d.Notes, "phases, layers, ranks and kernels of both sides: --table phases and others, or --format json")
		return d
	}
	for _, t := range []output.Table{
		changedPhases(r),
		most(changedLosses(r), 3, "layers, largest change first"),
		most(speedTable(r), 4, "ranks, farthest from the mean first"),
		ceilingTable(r),
	} {
		if len(t.Rows) > 0 {
			d.Tables = append(d.Tables, t)
		}
	}
	d.Notes = append(d.Notes, "more tables: --table layers, ranks, balance, steps, active or kernels; everything: --format json")
	return d
}

// shownRows is how many rows of a long table the overview shows.
const shownRows = 12

// most keeps the rows whose value in a column lies furthest from zero, or of a
// ratio from 1, and says so in the title. A table that is short stays as it is.
func most(t output.Table, column int, what string) output.Table {
	if len(t.Rows) <= shownRows {
		return t
	}
	size := func(row []any) float64 {
		v := row[column].(router.Number)
		if t.Columns[column].Kind == output.Ratio {
			v--
		}
		if !v.Defined() {
			return -1
		}
		return math.Abs(float64(v))
	}
	t.Title += fmt.Sprintf(" (%d of %d %s)", shownRows, len(t.Rows), what)
	t.Rows = slices.Clone(t.Rows)
	slices.SortStableFunc(t.Rows, func(a, b []any) int { return cmp.Compare(size(b), size(a)) })
	t.Rows = t.Rows[:shownRows]
	return t
}

// comparisonHeadline leads with the compute of the slowest rank, which is the cost of
// imbalance. The GPU time of a step comes last, because a part of it is waiting.
func comparisonHeadline(r diff.Comparison) string {
	if !r.Comparable {
		return "not comparable: " + strings.Join(r.Reasons, "; ")
	}
	if !r.Step.Ratio.Defined() {
		return "no step with time on both sides"
	}
	var parts []string
	for _, p := range r.Phases {
		if p.Phase == nsys.PhaseExperts && !p.Collective && p.NormalSlowestNS > 0 {
			parts = append(parts, "expert compute of the slowest rank "+fromTo(p.NormalSlowestNS, p.PerfectSlowestNS))
		}
	}
	if layer, share, ok := worstLoss(r); ok {
		loss := r.Ceiling.StragglerLoss
		parts = append(parts, fmt.Sprintf("straggler loss %s, %s of the reduction is in %s", fromTo(loss.NormalNS, loss.PerfectNS), quantity.Percent(share), layer))
	}
	step := "GPU time " + fromTo(r.Step.NormalNS, r.Step.PerfectNS)
	if change := collectiveChange(r); change != 0 {
		step += fmt.Sprintf(", of which collectives (mostly waiting) %s", quantity.Duration(change))
	}
	return "per step, normal to perfect: " + strings.Join(append(parts, step), "; ")
}

// fromTo shows a change of a time.
func fromTo(normal, perfect router.Number) string {
	return fmt.Sprintf("%s to %s (%s)", quantity.Duration(normal), quantity.Duration(perfect), quantity.Change(perfect/normal-1))
}

// collectiveChange is by how much the time in collective kernels changed, mean
// over ranks, in nanoseconds per step.
func collectiveChange(r diff.Comparison) (ns router.Number) {
	for _, p := range r.Phases {
		if p.Collective && p.Change.DifferenceNS.Defined() {
			ns += p.Change.DifferenceNS
		}
	}
	return ns
}

// worstLoss is the layer whose straggler loss was reduced most, and its share of the
// reduction over all layers.
func worstLoss(r diff.Comparison) (layer string, share float64, ok bool) {
	var fall, most float64
	for _, s := range r.Stragglers {
		d := -float64(s.Change.DifferenceNS)
		if d > 0 {
			fall += d
		}
		if d > most {
			most, layer = d, lossLayer(s.Layer)
		}
	}
	return layer, most / fall, most > 0
}

func lossLayer(layer router.Whole) string {
	if !layer.Defined() {
		return "no layer"
	}
	return fmt.Sprintf("layer %d", layer)
}

func timeColumn(name, key string) output.Column {
	return output.Column{Name: name, Key: key, Kind: output.Duration}
}

// changeColumns and changeCells are the part that all tables of times share.
var changeColumns = []output.Column{
	timeColumn("normal", "normal_ns"), timeColumn("perfect", "perfect_ns"),
	timeColumn("difference", "difference_ns"), timeColumn("±", "difference_sd_ns"),
	{Name: "of normal", Key: "difference_of_normal", Kind: output.Percent},
}

func changeCells(c diff.Change) []any {
	share := router.Undefined()
	if c.NormalNS > 0 {
		share = c.DifferenceNS / c.NormalNS
	}
	return []any{c.NormalNS, c.PerfectNS, c.DifferenceNS, c.DifferenceSDNS, share}
}

func changeTable(name, title string, before []output.Column, after ...output.Column) output.Table {
	columns := append(append([]output.Column{}, before...), changeColumns...)
	return output.Table{Name: name, Title: title, Columns: append(columns, after...)}
}

func timeKind(collective bool) string {
	if collective {
		return "collective"
	}
	return "compute"
}

var slowestColumns = []output.Column{
	timeColumn("slowest normal", "normal_slowest_ns"), timeColumn("slowest perfect", "perfect_slowest_ns"),
	{Name: "kernels normal", Key: "normal_instances", Kind: output.Real}, {Name: "kernels perfect", Key: "perfect_instances", Kind: output.Real},
}

func blockCells(p diff.PhaseChange) []any {
	return append(changeCells(p.Change), p.NormalSlowestNS, p.PerfectSlowestNS, p.NormalInstances, p.PerfectInstances)
}

func changedPhases(r diff.Comparison) output.Table {
	t := changeTable("phases", "Time per step by phase, mean over ranks (±: standard deviation of one step)", []output.Column{{Name: "phase"}, {Name: "kind"}}, slowestColumns...)
	for _, p := range r.Phases {
		t.Rows = append(t.Rows, append([]any{string(p.Phase), timeKind(p.Collective)}, blockCells(p)...))
	}
	t.Rows = append(t.Rows, append(append([]any{"step", "busy"}, changeCells(r.Step)...), nil, nil, nil, nil))
	return t
}

func changedLayers(r diff.Comparison) output.Table {
	t := changeTable("layers", "Time per step by layer and phase, mean over ranks", []output.Column{{Name: "layer", Kind: output.Count}, {Name: "phase"}, {Name: "kind"}}, slowestColumns...)
	for _, p := range r.LayerTimes {
		t.Rows = append(t.Rows, append([]any{p.Layer, string(p.Phase), timeKind(p.Collective)}, blockCells(p.PhaseChange)...))
	}
	return t
}

func changedLosses(r diff.Comparison) output.Table {
	t := changeTable("stragglers", "Straggler loss per step: slowest rank − mean, compute of all phases", []output.Column{{Name: "layer", Kind: output.Count}})
	for _, s := range r.Stragglers {
		t.Rows = append(t.Rows, append([]any{s.Layer}, changeCells(s.Change)...))
	}
	return t
}

func changedRanks(r diff.Comparison) output.Table {
	t := changeTable("ranks", "Time per step by rank and phase", []output.Column{{Name: "rank", Kind: output.Count}, {Name: "phase"}, {Name: "kind"}})
	for _, p := range r.RankTimes {
		t.Rows = append(t.Rows, append([]any{p.Rank, string(p.Phase), timeKind(p.Collective)}, changeCells(p.Change)...))
	}
	return t
}

func speedTable(r diff.Comparison) output.Table {
	return output.Table{Name: "hardware", Title: "Expert compute per step and rank; hardware and load relative to the mean rank", Columns: []output.Column{
		{Name: "rank", Kind: output.Count}, timeColumn("normal", "normal_ns"), timeColumn("perfect", "perfect_ns"),
		{Name: "hardware", Kind: output.Ratio}, {Name: "load", Kind: output.Ratio},
	}, Rows: output.Rows(r.RankSpeeds, func(s diff.RankSpeed) []any {
		return []any{s.Rank, s.NormalNS, s.PerfectNS, s.Hardware, s.Load}
	})}
}

func ceilingTable(r diff.Comparison) output.Table {
	k := r.Ceiling
	return output.Table{Name: "bound", Title: "Upper bound of the gain from balance: 1/(1 − f + f·b) − 1", Columns: []output.Column{{Name: "quantity"}, {Name: "value", Kind: output.Percent}}, Rows: [][]any{
		{"f, expert share of the normal step", k.ExpertShare},
		{"b, balancedness of expert compute, normal", k.Balancedness},
		{"b, balancedness of expert compute, perfect", k.PerfectBalancedness},
		{"upper bound of the gain", k.GainBound},
		{"w, mean expert compute, perfect/normal", k.ExpertWork},
		{"upper bound including w, 1/(1 − f + f·b·w) − 1", k.GainBoundWithWork},
		{"measured gain in GPU time per step", k.StepGain},
	}}
}

func balanceChangeTable(r diff.Comparison) output.Table {
	return output.Table{Name: "balance", Title: "max/mean in both arms, mean over steps", Columns: []output.Column{
		{Name: "layer", Kind: output.Count}, {Name: "level"}, {Name: "quantity"},
		{Name: "normal", Key: "normal_max_over_mean", Kind: output.Ratio}, {Name: "perfect", Key: "perfect_max_over_mean", Kind: output.Ratio},
	}, Rows: output.Rows(r.Balance, func(b diff.BalanceChange) []any {
		return []any{b.Layer, b.Level, b.Quantity, b.Normal, b.Perfect}
	})}
}

func stepComparisonTable(r diff.Comparison) output.Table {
	return output.Table{Name: "steps", Title: "Steps", Columns: []output.Column{
		{Name: "arm"}, {Name: "step", Kind: output.Count}, {Name: "compared"},
		timeColumn("GPU time, mean rank", "mean_ns"), timeColumn("experts, slowest rank", "experts_slowest_ns"),
	}, Rows: output.Rows(r.Steps, func(s diff.StepTime) []any {
		return []any{string(s.Arm), s.Step, s.Compared, s.MeanNS, s.ExpertsNS}
	})}
}

func activeTable(r diff.Comparison) output.Table {
	return output.Table{Name: "active", Title: "Active experts", Columns: []output.Column{
		{Name: "layer", Kind: output.Count}, {Name: "normal", Kind: output.Count}, {Name: "perfect", Kind: output.Count},
	}, Rows: output.Rows(r.Active, func(a diff.ActiveExperts) []any {
		return []any{a.Layer, a.Normal, a.Perfect}
	})}
}

func familyTable(r diff.Comparison) output.Table {
	return output.Table{Name: "kernels", Title: "Kernels launched by one arm only", Columns: []output.Column{
		{Name: "arm"}, {Name: "family"}, {Name: "family in other arm", Key: "family_in_other_arm"},
		{Name: "variants", Kind: output.Count}, {Name: "instances", Kind: output.Count}, {Name: "total", Key: "total_ns", Kind: output.Duration},
	}, Rows: output.Rows(r.Kernels, func(k diff.KernelFamily) []any {
		return []any{string(k.Arm), k.Family, k.Elsewhere, len(k.Names), k.Instances, k.TotalNS}
	})}
}
