package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/table"
)

// ComparisonTables are the names of the tables of compare: of traces, and of reports and campaigns.
var ComparisonTables = append([]string{"work", "kinds", "phases", "layers", "gain", "kernels"}, CampaignTables...)

// Comparison lays a comparison out for people; JSON carries it as it is.
func Comparison(r diff.Comparison) output.Document {
	a := answer.OfComparison(&r)
	d := document(a, nil, struct {
		diff.Comparison
		Answer answer.Answer `json:"answer"`
	}{r, a}, comparisonTables(r)...)
	if r.Builds.Named() {
		d.Tables = slices.DeleteFunc(d.Tables, func(t table.Table) bool { return t.Name == "gain" })
		// or the parts are of another step
	} else if r.Comparable && (r.Prediction.Measured == nil || r.Split.Basis == diff.FromCampaign) {
		d.Lead = d.Named("gain").Without("gain")
		d.Lead.Title = ""
	} else if slices.ContainsFunc(r.Work, func(w diff.Work) bool { return !w.Equal }) {
		d.Lead = d.Named("work")
	}
	return d
}

// named puts the names of the arms in the place of A and B.
func named(columns string, arms [2]gain.Arm) string {
	return strings.NewReplacer("{A}", string(arms[0]), "{B}", string(arms[1])).Replace(columns)
}

// change are the columns of a diff.Change.
const change = ", normal_ns={A}, perfect_ns={B}, difference_ns, difference_of_normal:percent=of {A}"

// changeTable is a table of times in both arms, whose items embed a diff.Change.
func changeTable[T interface{ OfNormal() router.Number }](arms [2]gain.Arm, name, title string, items []T,
	columns string, computed ...table.Cell) table.Table {
	return table.Of(name, title, items, named(columns, arms),
		append(computed, table.Computed("difference_of_normal", func(c T) any { return c.OfNormal() }))...)
}

// kindOfTime says whether a time is of collectives.
func kindOfTime(collective bool) any {
	if collective {
		return "collective"
	}
	return "compute"
}

func comparisonTables(r diff.Comparison) []table.Table {
	arms := r.Builds.Names()
	phases := changeTable(arms, "phases", "Time per step by phase, mean over ranks",
		r.Phases, "phase, kind"+change,
		table.Computed("kind", func(p diff.PhaseChange) any { return kindOfTime(p.Collective) }))
	s := r.Step
	phases.Rows = append(phases.Rows, []any{"step", "busy", s.NormalNS, s.PerfectNS, s.DifferenceNS,
		s.OfNormal()})
	tables := []table.Table{
		phases,
		changeTable(arms, "layers", "Time per step by layer and phase, mean over ranks", r.LayerTimes,
			"layer, phase, kind"+change,
			table.Computed("kind", func(l diff.LayerChange) any { return kindOfTime(l.Collective) })).LeadBy("difference_ns"),
		splitTable(r.Split),
		table.Of("kernels", "Kernels of both sides, over all ranks and steps", r.Kernels, named("phase, "+
			"normal_instances=launches {A}, perfect_instances=launches {B}, normal_ns=total {A}, perfect_ns=total {B}, "+
			"normal_mean_ns=mean {A}, perfect_mean_ns=mean {B}, name:short", arms)).LeadBy("normal_ns", "perfect_ns"),
	}
	if len(r.Kinds) > 0 {
		tables = append([]table.Table{kindsTable(r, arms)}, tables...)
	}
	if !r.Comparable { // it leads
		return append([]table.Table{workTable(r, arms)}, tables...)
	}
	return append(tables, workTable(r, arms))
}

// splitTable is the parts of the gain, in milliseconds that add up.
func splitTable(s diff.Split) table.Table {
	t := table.New("gain", fmt.Sprintf("Parts of the gain, predicted from the traces: time saved per step (a step with "+
		"balanced routing takes %s, %s)", quantity.Duration(s.PerfectNS), s.Basis),
		"part, saved_ns=saved per step, saved_low_ns=95 % low, saved_high_ns=95 % high, gain:percent=of step")
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

func kindsTable(r diff.Comparison, arms [2]gain.Arm) table.Table {
	return table.Of("kinds", "Kinds of steps, each compared with its like; the other tables are of the first", r.Kinds,
		named("steps, normal_steps:count=steps {A}, perfect_steps:count=steps {B}, "+
			"normal_experts_slowest_ns<experts_slowest.normal_ns=experts slowest {A}, "+
			"perfect_experts_slowest_ns<experts_slowest.perfect_ns=experts slowest {B}, "+
			"predicted_gain:percent, steps_left_out=left out", arms),
		table.Computed("normal_steps", func(k diff.KindChange) any { return len(k.NormalSteps) }),
		table.Computed("perfect_steps", func(k diff.KindChange) any { return len(k.PerfectSteps) }))
}

// workTable is the work of the sides that balance cannot change.
func workTable(r diff.Comparison, arms [2]gain.Arm) table.Table {
	return table.Of("work", "What balance cannot change", r.Work, named("quantity, normal:real={A}, perfect:real={B}, "+
		"differs:percent, allowed:percent", arms), table.Computed("quantity", func(w diff.Work) any {
		if w.Unit != "" {
			return w.Quantity + " (" + w.Unit + ")"
		}
		return w.Quantity
	}), table.Computed("differs", func(w diff.Work) any { return w.Differs }),
		table.Computed("allowed", func(w diff.Work) any { return w.Allowed }))
}
