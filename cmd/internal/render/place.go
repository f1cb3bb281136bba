package render

import (
	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router/table"
)

// Place renders judged placements, of the arguments given.
func Place(result *place.Result, given string, files ...answer.Written) output.Document {
	d := document(answer.OfPlacement(result, given, files...), nil, result,
		table.Of("placements", "Placements, mean over layers and windows", result.Placements,
			"ranks, redundant, plan, learned_max_over_mean, "+loads+", judged_worst_window:ratio=worst window, "+
				"judged_load_change:percent=load change, null_p95, "+timeChange+", moved_share:percent=moved, verdict"),
		table.Of("workloads", "Judged windows, mean over layers", result.Workloads, "ranks, redundant, window:path, "+loads+
			", judged_load_change:percent=load change, null_p95, "+timeChange),
		table.Of("drift", "Load under the running placement, over windows in order", result.Drift,
			"ranks, window:path, max_over_mean, balancedness"),
		table.Of("layers", "Per layer, mean over steps", result.Layers,
			"ranks, redundant, layer, learned_max_over_mean, "+loads).LeadBy("judged_max_over_mean", "learned_max_over_mean"))
	if len(result.Placements) > 1 {
		d.Lead = d.Named("placements").Without("null_p95", "verdict", "judged_worst_window")
	}
	return d
}

// loads are the columns of the load of a placement, and of the predicted change of time.
const (
	loads      = "judged_max_over_mean, baseline_max_over_mean"
	timeChange = "predicted_time_change<predicted_time_change.estimate:percent=time change, " +
		"predicted_time_change_low<predicted_time_change.low:percent=low, " +
		"predicted_time_change_high<predicted_time_change.high:percent=high"
)
