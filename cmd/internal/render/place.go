package render

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/table"
)

// Place renders judged placements, of the arguments given.
func Place(result *place.Result, given string, files ...answer.Written) output.Document {
	a := answer.OfPlacement(result, given, files...)
	d := document(a, placeView{result}.notes(), struct {
		*place.Result
		Answer answer.Answer `json:"answer"`
	}{result, a}, placeView{result}.tables()...)
	if len(result.Placements) > 1 {
		d.Lead = d.Named("placements").Without("null_p95", "verdict", "judged_worst_window")
	}
	return d
}

// placeView writes placements for people.
type placeView struct{ *place.Result }

// notes say what time is predicted from.
func (res placeView) notes() []string {
	c := res.Cost
	if c == nil {
		return nil
	}
	return []string{fmt.Sprintf("time is predicted by replaying %s with the ranks' loads of each judged window: %s of the "+
		"experts' time follows the load there, within %s (95 %%); load explains %s of what ranks differ in; copies, dispatch "+
		"and combine are taken to cost nothing more", filepath.Base(c.Source), quantity.Percent(c.Follows),
		quantity.Percent(c.Error), quantity.Percent(c.Explained))}
}

// loads are the columns of the load of a placement, and of the predicted change of time.
const (
	loads      = "judged_max_over_mean, baseline_max_over_mean"
	timeChange = "predicted_time_change<predicted_time_change.estimate:percent=time change, " +
		"predicted_time_change_low<predicted_time_change.low:percent=low, " +
		"predicted_time_change_high<predicted_time_change.high:percent=high"
)

func (res placeView) tables() []table.Table {
	return []table.Table{
		table.Of("placements", "Placements, mean over layers and windows", res.Placements,
			"ranks, redundant, plan, learned_max_over_mean, "+loads+", judged_worst_window:ratio=worst window, "+
				"judged_load_change:percent=load change, null_p95, "+timeChange+", moved_share:percent=moved, verdict"),
		table.Of("workloads", "Judged windows, mean over layers", res.Workloads,
			"ranks, redundant, window, "+loads+", judged_load_change:percent=load change, null_p95, "+timeChange,
			table.Computed("window", func(w place.Workload) any { return res.label(w.Window) })),
		gainsTable(res.Placements),
		table.Of("drift", "Load under the running placement, over windows in order", res.Drift,
			"ranks, window, max_over_mean, balancedness",
			table.Computed("window", func(d place.Drift) any { return res.label(d.Window) })),
		table.Of("layers", "Per layer, mean over steps", res.Layers,
			"ranks, redundant, layer, learned_max_over_mean, "+loads).LeadBy("judged_max_over_mean", "learned_max_over_mean"),
	}
}

// gainsTable is the gain that the curve of a campaign predicts for the load of each placement.
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
	return empty(table.Of("gains", "Gain predicted from the campaign's curve of time over load", rows,
		"ranks, redundant, plan, point, value, from_max_over_mean=from, to_max_over_mean=to, estimate:percent=gain, "+
			"low:percent, high:percent, refused"), "give a --campaign of several routers")
}

// label names a window.
func (res placeView) label(window string) string {
	return short(window, slices.Concat(res.Learned, res.Judged), func(w place.Window) string { return w.Name })
}
