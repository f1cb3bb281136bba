package render

import (
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router/table"
)

// CountsTables are the names of the tables of counts, some of which may be missing from a result.
var CountsTables = []string{"imbalance", "summary", "reported"}

// Counts renders judged expert statistics, given as arguments of a command.
func Counts(result *counts.Result, given string) output.Document {
	a := answer.OfCounts(result, given)
	d := document(a, nil, struct {
		*counts.Result
		Answer answer.Answer `json:"answer"`
	}{result, a}, countsTables(result)...)
	if len(result.Records) > 1 {
		d.Lead = d.Named("summary").Without("layers", "flagged", "balancedness", "imbalance", "worst_floor")
	}
	return d
}

func countsTables(res *counts.Result) (tables []table.Table) {
	// a record is named by the last part of its path where that tells it from the others, and its phase
	name := func(source string, phase counts.Phase) any {
		name := short(source, res.Records, func(r counts.ResultRecord) string { return r.Source })
		if phase != "" {
			name += " (" + string(phase) + ")"
		}
		return name
	}
	if len(res.Imbalance) > 0 || len(res.Reported) == 0 {
		tables = append(tables,
			table.Of("imbalance", "Per layer, mean over steps", res.Imbalance, "source, layer, level, steps, max_over_mean, "+
				"imbalance:percent, balancedness, active, floor, null_median, null_p95, flagged, worst",
				table.Computed("source", func(l imbalance.SourceRow) any { return name(l.Source, counts.Phase(l.Phase)) })).
				LeadBy("level", "max_over_mean"),
			table.Of("summary", "Over layers", res.Summary, "source, level, layers, flagged, max_over_mean, "+
				"imbalance:percent, balancedness, worst_layer, worst_max_over_mean=its max/mean, worst_floor=its floor",
				table.Computed("source", func(s counts.Summary) any { return name(s.Source, s.Phase) })))
	}
	if len(res.Reported) > 0 {
		tables = append(tables, table.Of("reported", "Rank load as reported by the engine", res.Reported,
			"source, step, passes, balancedness, max_over_mean",
			table.Computed("source", func(l counts.ResultReported) any { return name(l.Source, l.Phase) })))
	}
	return tables
}

// short is the last part of a path where that tells it from the paths of all items.
func short[T any](path string, all []T, of func(T) string) string {
	base := filepath.Base(path)
	if slices.ContainsFunc(all, func(o T) bool { return of(o) != path && filepath.Base(of(o)) == base }) {
		return path
	}
	return base
}
