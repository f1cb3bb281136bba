package render

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
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
	return output.Document{Headline: comparisonHeadline(r), Tables: comparisonTables(r), Notes: warningNotes(r.Warnings), Value: r}
}

// ComparisonOverview is what people see who asked for no table: where the
// difference is, and what explains it.
func ComparisonOverview(r diff.Comparison) output.Document {
	d := Comparison(r)
	if !r.Comparable {
		d.Tables = nil
		d.Notes = append(d.Notes, "phases, layers, ranks and kernels of both sides: --table phases and others, or --format json")
		return d
	}
	d.Tables = overview(d.Tables, "phases", "stragglers", "hardware", "bound")
	for i, t := range d.Tables {
		switch t.Name {
		case "stragglers":
			d.Tables[i] = most(t, 3, "layers, largest change first")
		case "hardware":
			d.Tables[i] = most(t, 4, "ranks, farthest from the mean first")
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
	if r.Ceiling.StepGain.Defined() {
		parts = append(parts, step)
	}
	return "per step, normal to perfect: " + strings.Join(parts, "; ")
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

// changeTable is a table of times in both arms, whose items embed a diff.Change.
func changeTable[T any](name, title string, items []T, before []output.Column, after ...output.Column) output.Table {
	of := computed(percent("of normal", "difference_of_normal"), func(c interface{ OfNormal() router.Number }) any { return c.OfNormal() })
	return output.Of(name, title, items, slices.Concat(before, []output.Column{
		duration("normal"), duration("perfect"), duration("difference"), duration("±", "difference_sd_ns"), of,
	}, after)...)
}

var slowestColumns = []output.Column{
	duration("slowest normal", "normal_slowest_ns"), duration("slowest perfect", "perfect_slowest_ns"),
	real("kernels normal", "normal_instances"), real("kernels perfect", "perfect_instances"),
}

// timeKind names the kind of time of a field "collective".
var timeKind = output.Column{Name: "kind", Cell: func(item any) any {
	if reflect.ValueOf(item).FieldByName("Collective").Bool() {
		return "collective"
	}
	return "compute"
}}

func changedPhases(r diff.Comparison) output.Table {
	t := changeTable("phases", "Time per step by phase, mean over ranks (±: standard deviation of one step)", r.Phases, []output.Column{label("phase"), timeKind}, slowestColumns...)
	s := r.Step
	t.Rows = append(t.Rows, []any{"step", "busy", s.NormalNS, s.PerfectNS, s.DifferenceNS, s.DifferenceSDNS, s.OfNormal(), nil, nil, nil, nil})
	return t
}

func changedLosses(r diff.Comparison) output.Table {
	type loss struct {
		Layer router.Whole `json:"layer"`
		diff.Change
	}
	var losses []loss
	for _, s := range r.Stragglers {
		losses = append(losses, loss{s.Layer, s.Change})
	}
	return changeTable("stragglers", "Straggler loss per step: slowest rank − mean, compute of all phases", losses, []output.Column{count("layer")})
}

func ceilingTable(r diff.Comparison) output.Table {
	k := r.Ceiling
	return output.Table{Name: "bound", Title: "Upper bound of the gain from balance: 1/(1 − f + f·b) − 1", Columns: []output.Column{label("quantity"), percent("value")}, Rows: [][]any{
		{"f, expert share of the normal step", k.ExpertShare},
		{"b, balancedness of expert compute, normal", k.Balancedness},
		{"b, balancedness of expert compute, perfect", k.PerfectBalancedness},
		{"upper bound of the gain", k.GainBound},
		{"w, mean expert compute, perfect/normal", k.ExpertWork},
		{"upper bound including w, 1/(1 − f + f·b·w) − 1", k.GainBoundWithWork},
		{"gain in GPU time per step of these traces, waiting included", k.StepGain},
	}}
}

func comparisonTables(r diff.Comparison) []output.Table {
	variants := computed(count("variants"), func(k diff.KernelFamily) any { return len(k.Names) })
	return []output.Table{
		changedPhases(r),
		changeTable("layers", "Time per step by layer and phase, mean over ranks", r.LayerTimes, []output.Column{count("layer"), label("phase"), timeKind}, slowestColumns...),
		changedLosses(r),
		changeTable("ranks", "Time per step by rank and phase", r.RankTimes, []output.Column{count("rank"), label("phase"), timeKind}),
		output.Of("hardware", "Expert compute per step and rank; hardware and load relative to the mean rank", r.RankSpeeds,
			count("rank"), duration("normal"), duration("perfect"), ratio("hardware"), ratio("load")),
		ceilingTable(r),
		output.Of("balance", "max/mean in both arms, mean over steps", r.Balance,
			count("layer"), label("level"), label("quantity"), ratio("normal", "normal_max_over_mean"), ratio("perfect", "perfect_max_over_mean")),
		output.Of("steps", "Steps", r.Steps,
			label("arm"), count("step"), label("compared"), duration("GPU time, mean rank", "mean_ns"), duration("experts, slowest rank", "experts_slowest_ns")),
		output.Of("active", "Active experts", r.Active, count("layer"), count("normal"), count("perfect")),
		output.Of("kernels", "Kernels launched by one arm only", r.Kernels,
			label("arm"), label("family"), label("family in other arm"), variants, count("instances"), duration("total")),
	}
}
