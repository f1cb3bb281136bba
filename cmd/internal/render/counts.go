package render

import (
	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/router/table"
)

// Counts renders judged expert statistics, given as arguments of a command.
func Counts(result *counts.Result, given string) output.Document {
	d := document(answer.OfCounts(result, given), nil, result,
		table.Of("imbalance", "Per layer, mean over steps", result.Imbalance, "source:path, phase, layer, level, steps, "+
			"max_over_mean, imbalance:percent, balancedness, active, floor, null_median, null_p95, flagged, worst").
			LeadBy("level", "max_over_mean"),
		table.Of("summary", "Over layers", result.Summary, "source:path, phase, level, layers, "+
			"flagged_layers=flagged, max_over_mean, imbalance:percent, balancedness, worst_layer, "+
			"worst_max_over_mean=its max/mean, worst_floor=its floor"),
		table.Of("reported", "Rank load as reported by the engine", result.Reported,
			"source:path, phase, step, passes, balancedness, max_over_mean"))
	switch {
	case len(result.Reported) == 0:
		d.Tables = d.Tables[:2]
	case len(result.Imbalance) == 0:
		d.Tables = d.Tables[2:]
	}
	if len(result.Records) > 1 {
		d.Lead = d.Named("summary").Without("layers", "flagged_layers", "balancedness", "imbalance", "worst_floor")
	}
	return d
}
