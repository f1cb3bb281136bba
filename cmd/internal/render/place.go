package render

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/table"
)

// Place renders judged placements, of the arguments given.
func Place(result *place.Result, given string) output.Document {
	a := answer.OfPlacement(result, given)
	d := document(a, placeView{result}.notes(), struct {
		*place.Result
		Answer answer.Answer `json:"answer"`
	}{result, a}, placeView{result}.tables()...)
	if result.Rebalance != nil {
		d.Lead = d.Named("rebalance").Without("worst_max_over_mean", "moved_experts", "chosen")
	} else if len(result.Placements) > 1 {
		d.Lead = d.Named("placements").Without("null_p95", "verdict")
	}
	return d
}

// placeView writes placements for people.
type placeView struct{ *place.Result }

// notes say what time is predicted from, and how far that is off.
func (res placeView) notes() []string {
	c := res.Cost
	if c == nil {
		return nil
	}
	perSlot := quantity.Duration(c.SlotNS) + " per slot"
	if !c.SlotNS.Defined() {
		perSlot = "a time per slot, whose number in a step is unknown"
	}
	text := fmt.Sprintf("time of a rank's experts per layer and step, fitted to the %s %s: %s + %s + %s per "+
		"active expert", c.Basis, filepath.Base(c.Source), quantity.Duration(c.FixedNS), perSlot,
		quantity.Duration(c.ExpertNS))
	for _, h := range c.HeldOut {
		text += fmt.Sprintf("; held-out error in %s, one %s left out at a time: median %s, p90 %s, of changes p95 %s",
			h.Regime,
			h.Group, quantity.Percent(h.Median), quantity.Percent(h.P90), quantity.Percent(h.Change))
	}
	if c.StepNS.Defined() {
		text += fmt.Sprintf("; a step takes %s (%s)", quantity.Duration(c.StepNS), c.StepBasis)
	}
	if m := c.Measured; m != nil {
		text += fmt.Sprintf("; the campaign measured %s (%s to %s) for balanced routing, the most a placement can reach",
			quantity.Change(m.Estimate), quantity.Change(m.Low), quantity.Change(m.High))
	}
	lack := "dispatch, combine, "
	if c.Basis != "benchmark" {
		lack += "different times of ranks with equal load, "
	}
	return []string{text, "intervals of time are over judged windows and fits without one group, widened by what 95 % " +
		"of held-out changes err by; they lack " + lack + "and expert GEMMs that run faster at equal sizes"}
}

// tables are all of them.
func (res placeView) tables() []table.Table {
	window := computed(label("window"), func(w place.Workload) any { return res.label(w.Window) })
	judged := []table.Column{ratio("judged max/mean"), ratio("baseline max/mean")}
	tables := []table.Table{table.Of("placements", "Placements, mean over layers and windows", res.Placements,
		slices.Concat([]table.Column{count("ranks"), count("redundant"), label("plan"), ratio("learned max/mean")},
			judged,
			[]table.Column{percent("load change", "judged_load_change"), ratio("null p95")},
			timeColumns(func(p place.Placement) *place.TimeChange { return p.Time }),
			[]table.Column{percent("moved", "moved_share"), label("verdict")})...),
		table.Of("workloads", "Judged windows, mean over layers", res.Workloads,
			slices.Concat([]table.Column{count("ranks"), count("redundant"), window}, judged,
				[]table.Column{percent("load change", "judged_load_change"), ratio("null p95")},
				timeColumns(func(w place.Workload) *place.TimeChange { return w.Time }))...)}
	tables = append(tables, gainsTable(res.Placements))
	price := slices.Concat([]table.Column{count("ranks"), count("redundant"), label("plan"),
		size("copies per rank and layer", "replica_bytes_per_rank_and_layer")},
		within("rank", size("copies per rank", "replica_bytes_per_rank")),
		[]table.Column{count("experts to move", "moved_experts")}, within("moved", size("to move", "moved_bytes")),
		[]table.Column{duration("move"), real("steps to pay back", "paid_back_after_steps"),
			real("break-even tokens")})
	plans := []table.Column{count("ranks"), count("redundant"), label("plan"), count("left out"),
		ratio("judged max/mean"), ratio("p95 over layers", "judged_p95_over_layers"),
		ratio("worst left out", "judged_worst_of_left_out"), percent("moved", "moved_share")}
	curve := slices.Concat([]table.Column{count("ranks"), count("redundant"), percent("moved", "moved_share"),
		count("experts to move", "moved_experts")}, within("moved", size("to move", "moved_bytes")),
		[]table.Column{ratio("learned max/mean"), ratio("judged max/mean"), label("knee"), label("afresh"),
			label("in budget")})
	tables = append(tables,
		empty(table.Of("plans", "Ways of learning, on windows left out of it, mean over layers and windows", res.Plans,
			plans...), "give windows of other traffic: these are one kind"),
		empty(table.Of("curve", "From the running placement on, by moves", res.Curve, curve...),
			"name what runs by --from, or give --max-moves"))
	tables = append(tables, empty(table.Of("copies", "More copies against fewer, paired on windows left out", res.Copies,
		count("ranks"), count("fewer"), count("more"), count("left out"), count("better"),
		ratio("difference", "max_over_mean_difference"), ratio("low"), ratio("high"),
		percent("time difference", "predicted_time_difference"), size("further bytes per rank"),
		label("pay", "more_are_clearly_more_even")), "give several --redundant, and windows of two kinds"),
		empty(table.Of("phases", "Each phase on plans of its own, of the other, of both, on windows left out", res.Phases,
			count("ranks"), count("redundant"), label("phase"), count("left out"), ratio("own plan", "own_max_over_mean"),
			ratio("other's plan", "other_max_over_mean"), ratio("joint plan", "joint_max_over_mean")),
			"no record tells prefill from decode, of both"))
	if r := res.Rebalance; r != nil {
		tables = append(tables, table.Of("rebalance", "Ways of when to place anew, over windows in order", r.Ways,
			count("ranks"), count("redundant"), label("way"), label("plan"), count("rebalances"), ratio("max/mean"),
			ratio("worst window", "worst_max_over_mean"), percent("load change"), percent("moved each time", "moved_share"),
			count("experts to move", "moved_experts"), duration("moves", "move_ns"),
			duration("experts and moves", "predicted_expert_move_ns"), label("chosen")),
			table.Of("served", "Load over the windows in order", r.Served, count("ranks"), count("redundant"), label("way"),
				label("plan"), computed(label("window"), func(s place.Served) any { return res.label(s.Window) }),
				ratio("max/mean"), ratio("balancedness"), percent("moved", "moved_share")),
			table.Of("settings", "Settings of engines", r.Settings, count("ranks"), count("redundant"), label("engine"),
				label("way"), ratio("max/mean"), percent("load change"), label("setting")))
	}
	return append(tables, table.Of("price", "Price of each placement", res.Placements, price...),
		table.Of("layers", "Per layer, mean over steps", res.Layers,
			slices.Concat([]table.Column{count("ranks"), count("redundant"), count("layer"), ratio("learned max/mean")},
				judged)...).LeadBy("judged_max_over_mean", "learned_max_over_mean"))
}

// gainsTable is what the curve of a campaign predicts for the load of each placement.
func gainsTable(placements []place.Placement) table.Table {
	type row struct {
		place.Plan
		Name string `json:"plan"`
		gain.Predicted
	}
	var rows []row
	for _, p := range placements {
		for _, g := range p.Gains {
			rows = append(rows, row{p.Plan, p.Name, g})
		}
	}
	return empty(table.Of("gains", "Gain predicted from the campaign's curve of time over load", rows, count("ranks"),
		count("redundant"), label("plan"), label("point"), real("value"), ratio("from", "from_max_over_mean"),
		ratio("to", "to_max_over_mean"), percent("gain", "estimate"), percent("low"), percent("high"),
		label("refused")), "give a --campaign of several --routers")
}

// empty says why a table has no rows, where it has none.
func empty(t table.Table, why string) table.Table {
	if len(t.Rows) == 0 {
		t.Title += ": none; " + why
	}
	return t
}

// timeColumns are the predicted change of time and its interval.
func timeColumns[T any](of func(T) *place.TimeChange) []table.Column {
	cell := func(c table.Column, number func(*place.TimeChange) router.Number) table.Column {
		return computed(c, func(item T) any {
			if t := of(item); t != nil {
				return number(t)
			}
			return router.Undefined()
		})
	}
	return []table.Column{
		cell(percent("time change", "predicted_time_change"),
			func(t *place.TimeChange) router.Number { return t.Estimate }),
		cell(percent("low", "predicted_time_change_low"), func(t *place.TimeChange) router.Number { return t.Low }),
		cell(percent("high", "predicted_time_change_high"), func(t *place.TimeChange) router.Number { return t.High }),
	}
}

// label names a window.
func (res placeView) label(window string) string {
	return short(window, slices.Concat(res.Learned, res.Judged), func(w place.Window) string { return w.Name })
}
