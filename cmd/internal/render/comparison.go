package render

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/table"
)

// Comparison lays a comparison out for people; JSON carries it as it is.
func Comparison(r diff.Comparison) output.Document {
	a := answer.OfComparison(&r)
	d := document(a, nil, struct {
		diff.Comparison
		Answer answer.Answer `json:"answer"`
	}{r, a}, comparisonTables(r)...)
	if r.Builds.Named() {
		d.Tables = slices.DeleteFunc(d.Tables, func(t table.Table) bool {
			return t.Name == "gain"
		})
		// or the parts are of another step
	} else if r.Comparable && (r.Prediction.Measured == nil || r.Split.Basis == diff.FromCampaign) {
		d.Lead = d.Named("gain").Without("gain")
		d.Lead.Title = ""
	} else if slices.ContainsFunc(r.Work, func(w diff.Work) bool { return !w.Equal }) {
		d.Lead = d.Named("work")
	}
	return d
}

// arms are the sides whose names tables print.
type arms [2]gain.Arm

// both are two columns, one for each side, of the keys normal and perfect with this tail.
func (a arms) both(column func(string, ...string) table.Column, before, tail string) []table.Column {
	return []table.Column{column(before+string(a[0]), "normal"+tail), column(before+string(a[1]), "perfect"+tail)}
}

// splitTable is what the gain is made of: milliseconds that add up.
func splitTable(s diff.Split) table.Table {
	t := table.Table{Name: "gain",
		Title: fmt.Sprintf("Parts of the gain, predicted from the traces: time saved per step (a step with balanced routing "+
			"takes %s, %s)", quantity.Duration(s.PerfectNS), s.Basis),
		Columns: []table.Column{label("part"), duration("saved per step", "saved_ns"),
			duration("95 % low", "saved_low_ns"), duration("95 % high", "saved_high_ns"), percent("of step", "gain")}}
	var total router.Number
	for _, p := range s.Parts {
		t.Rows = append(t.Rows, []any{p.Name, p.SavedNS, p.Low * s.PerfectNS, p.High * s.PerfectNS, p.Gain})
		total += p.SavedNS
	}
	if s.Known() {
		t.Rows = append(t.Rows, []any{"total", total, s.Low * s.PerfectNS, s.High * s.PerfectNS, s.Gain})
	}
	return t
}

// changeTable is a table of times in both arms, whose items embed a diff.Change.
func changeTable[T any](a arms, name, title string, items []T, before []table.Column,
	after ...table.Column) table.Table {
	of := computed(percent("of "+string(a[0]), "difference_of_normal"),
		func(c interface{ OfNormal() router.Number }) any { return c.OfNormal() })
	return table.Of(name, title, items, slices.Concat(before, a.both(duration, "", "_ns"),
		[]table.Column{duration("difference"), duration("±", "difference_sd_ns"), of}, after)...)
}

// slowest are the times of the slowest ranks.
func (a arms) slowest() []table.Column { return a.both(duration, "slowest ", "_slowest_ns") }

// timeKind names the kind of time of a field "collective".
var timeKind = table.Column{Name: "kind", Cell: func(item any) any {
	if reflect.ValueOf(item).FieldByName("Collective").Bool() {
		return "collective"
	}
	return "compute"
}}

func (a arms) kinds(r diff.Comparison) table.Table {
	t := table.Table{Name: "kinds",
		Title: "Kinds of steps, each compared with its like; the other tables are of the first",
		Columns: slices.Concat([]table.Column{label("steps")},
			a.both(count, "steps ", "_steps"), a.both(duration, "experts slowest ", "_experts_slowest_ns"),
			a.both(duration, "loss ", "_loss_ns"), []table.Column{percent("predicted gain", "predicted_gain")})}
	for _, k := range r.Kinds {
		e, l := k.SlowestExperts, k.StragglerLoss
		t.Rows = append(t.Rows, []any{k.Steps, len(k.NormalSteps), len(k.PerfectSteps), e.NormalNS, e.PerfectNS,
			l.NormalNS, l.PerfectNS, k.Gain})
	}
	return t
}

// work is what the sides did, as far as balance cannot change it.
func (a arms) work(r diff.Comparison) table.Table {
	t := table.Table{Name: "work", Title: "What balance cannot change",
		Columns: slices.Concat([]table.Column{label("quantity")},
			a.both(real, "", ""), []table.Column{percent("differs"), percent("allowed")})}
	for _, w := range r.Work {
		name := w.Quantity
		if w.Unit != "" {
			name += " (" + w.Unit + ")"
		}
		t.Rows = append(t.Rows, []any{name, w.Normal, w.Perfect, w.Differs, w.Allowed})
	}
	return t
}

func (a arms) phases(r diff.Comparison) table.Table {
	t := changeTable(a, "phases", "Time per step by phase, mean over ranks (±: standard deviation of one step)",
		r.Phases, []table.Column{label("phase"), timeKind}, a.slowest()...)
	s := r.Step
	t.Rows = append(t.Rows, []any{"step", "busy", s.NormalNS, s.PerfectNS, s.DifferenceNS, s.DifferenceSDNS,
		s.OfNormal(), nil, nil})
	return t
}

func (a arms) losses(r diff.Comparison) table.Table {
	type loss struct {
		Layer router.OptInt `json:"layer"`
		diff.Change
	}
	var losses []loss
	for _, s := range r.Stragglers {
		losses = append(losses, loss{s.Layer, s.Change})
	}
	return changeTable(a, "stragglers", "Straggler loss per step: slowest rank − mean, compute of all phases", losses,
		[]table.Column{count("layer")}).LeadBy("difference_ns")
}

func comparisonTables(r diff.Comparison) []table.Table {
	a := arms(r.Builds.Names())
	tables := []table.Table{
		a.phases(r),
		changeTable(a, "layers", "Time per step by layer and phase, mean over ranks", r.LayerTimes,
			[]table.Column{count("layer"), label("phase"), timeKind}, a.slowest()...).LeadBy("difference_ns"),
		a.losses(r),
		splitTable(r.Split),
		table.Of("steps", "Steps", r.Steps, label("arm"),
			count("step"), label("compared"), duration("GPU time, mean rank", "mean_ns"),
			duration("experts, slowest rank", "experts_slowest_ns"), duration("wall time", "wall_ns")),
		table.Of("kernels", "Kernels of both sides, over all ranks and steps", r.Kernels, slices.Concat(
			[]table.Column{label("phase")}, a.both(count, "launches ", "_instances"), a.both(duration, "total ", "_ns"),
			a.both(duration, "mean ", "_mean_ns"), []table.Column{{Name: "name", Width: 70}})...).LeadBy("normal_ns",
			"perfect_ns"),
	}
	if len(r.Kinds) > 0 {
		tables = append([]table.Table{a.kinds(r)}, tables...)
	}
	if !r.Comparable { // it leads
		return append([]table.Table{a.work(r)}, tables...)
	}
	return append(tables, a.work(r))
}
