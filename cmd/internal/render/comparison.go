package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/table"
)

// Comparison lays a comparison out for people; JSON carries it as it is.
func Comparison(r diff.Comparison, given answer.Compared) output.Document {
	d := document(answer.OfComparison(&r, given), nil, r, comparisonTables(r)...)
	if !r.Comparable {
		d.Why = strings.Join(answer.Refusals(&r), "; ")
	}
	for _, step := range d.Answer.Next[:min(1, len(d.Why), len(d.Answer.Next))] {
		d.Why += "; try " + step.Command
	}
	switch {
	case r.Builds.Named(): // the parts of a gain are of balance
		d.Tables = slices.DeleteFunc(d.Tables, func(t table.Table) bool { return t.Name == "gain" })
	case r.Comparable && (r.Split.Measured == nil || r.Split.Basis == diff.FromCampaign): // else the step is another
		d.Lead = d.Named("gain").Without("gain")
		d.Lead.Title = ""
	case slices.ContainsFunc(r.Work, func(w diff.Work) bool { return !w.Equal }):
		d.Lead = d.Named("work")
	}
	return d
}

// change are the columns of a diff.Change, with A and B for the arms.
const change = ", normal_ns={A}, perfect_ns={B}, difference_ns, difference_of_normal<OfNormal:percent=of {A}"

func comparisonTables(r diff.Comparison) []table.Table {
	arms := r.Builds.Names()
	named := func(columns string) string {
		return strings.NewReplacer("{A}", string(arms[0]), "{B}", string(arms[1])).Replace(columns)
	}
	phases := table.Of("phases", "Kernel time per step by phase, mean over ranks, without the gaps between kernels",
		append(slices.Clone(r.Phases), diff.PhaseChange{Phase: "all kernels", Change: r.Step}),
		named("phase, collective"+change))
	return []table.Table{
		table.Of("kinds", "Kinds of steps, each compared with its like; the other tables are of the first", r.Kinds,
			named("steps, normal_steps=steps {A}, perfect_steps=steps {B}, "+
				"normal_experts_slowest_ns<experts_slowest.normal_ns=experts slowest {A}, "+
				"perfect_experts_slowest_ns<experts_slowest.perfect_ns=experts slowest {B}, "+
				"predicted_gain:percent, predicted_low:percent=95 % low, predicted_high:percent=95 % high, "+
				"steps_left_out=left out of both")),
		phases,
		table.Of("layers", "Kernel time per step by layer and phase, mean over ranks", r.LayerTimes,
			named("layer, phase, collective"+change)).LeadBy("difference_ns"),
		splitTable(r.Split),
		table.Of("kernels", "Kernels of both sides, over all ranks and steps", r.Kernels, named("phase, "+
			"normal_instances=launches {A}, perfect_instances=launches {B}, normal_ns=total {A}, perfect_ns=total {B}, "+
			"difference_ns, name:short")).LeadBy("normal_ns", "perfect_ns"),
		table.Of("work", "What balance cannot change", r.Work, named("quantity, unit, normal:real={A}, perfect:real={B}, "+
			"differs:percent, allowed:percent")),
	}
}

// splitTable is the parts of the gain, which add up.
func splitTable(s diff.Split) table.Table {
	parts := slices.Clone(s.Parts)
	if s.Known() {
		total := diff.Part{Name: "total", Gain: s.Gain, Low: s.Low, High: s.High}
		for _, p := range s.Parts {
			total.SavedNS += p.SavedNS
		}
		parts = append(parts, total)
	}
	return table.Of("gain", fmt.Sprintf("Parts of the gain, predicted from the traces: time saved per step (a step with "+
		"balanced routing takes %s, %s)", quantity.Duration(s.PerfectNS), s.Basis), parts,
		"part, saved_ns=saved per step, saved_low_ns=95 % low, saved_high_ns=95 % high, gain:percent=of a balanced step",
		table.Computed("saved_low_ns", func(p diff.Part) any { return p.Low * s.PerfectNS }),
		table.Computed("saved_high_ns", func(p diff.Part) any { return p.High * s.PerfectNS }))
}
