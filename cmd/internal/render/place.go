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
	if len(result.Placements) > 1 {
		d.Lead = d.Named("placements").Without("null_p95", "verdict", "judged_p95_over_layers", "judged_worst_window")
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
		text += fmt.Sprintf("; held-out error, one layer left out at a time: median %s, p90 %s, of changes p95 %s",
			quantity.Percent(h.Median), quantity.Percent(h.P90), quantity.Percent(h.Change))
	}
	if c.StepNS.Defined() {
		text += fmt.Sprintf("; a step takes %s (%s)", quantity.Duration(c.StepNS), c.StepBasis)
	}
	if m := c.Measured; m != nil {
		text += fmt.Sprintf("; the campaign measured %s (%s to %s) for balanced routing, the most a placement can reach",
			quantity.Change(m.Estimate), quantity.Change(m.Low), quantity.Change(m.High))
	}
	return []string{text, "intervals of time are over judged windows, widened by what 95 % of held-out changes err by; " +
		"they lack dispatch, combine, different times of ranks with equal load, and expert GEMMs that run faster at equal " +
		"sizes"}
}

// tables are all of them.
func (res placeView) tables() []table.Table {
	window := computed(label("window"), func(w place.Workload) any { return res.label(w.Window) })
	judged := []table.Column{ratio("judged max/mean"), ratio("baseline max/mean")}
	tables := []table.Table{table.Of("placements", "Placements, mean over layers and windows", res.Placements,
		slices.Concat([]table.Column{count("ranks"), count("redundant"), label("plan"), ratio("learned max/mean")},
			judged,
			[]table.Column{ratio("p95 over layers", "judged_p95_over_layers"), ratio("worst window", "judged_worst_window"),
				percent("load change", "judged_load_change"), ratio("null p95")},
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
		[]table.Column{duration("move"), real("steps to pay back", "paid_back_after_steps")})
	curve := slices.Concat([]table.Column{count("ranks"), count("redundant"), percent("moved", "moved_share"),
		count("experts to move", "moved_experts")}, within("moved", size("to move", "moved_bytes")),
		[]table.Column{ratio("learned max/mean"), ratio("judged max/mean"), label("knee"), label("afresh"),
			label("in budget")})
	tables = append(tables,
		empty(table.Of("curve", "From the running placement on, by moves", res.Curve, curve...),
			"name what runs by --from, or give --max-moves"))
	tables = append(tables, table.Of("drift", "Load under the running placement, over windows in order", res.Drift,
		count("ranks"), computed(label("window"), func(d place.Drift) any { return res.label(d.Window) }),
		ratio("max/mean"), ratio("balancedness")))
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
		label("refused")), "give a --campaign of several routers")
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
