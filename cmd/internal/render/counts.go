package render

import (
	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router/table"
)

// Counts renders judged expert statistics, given as arguments of a command.
func Counts(result *counts.Result, given string) output.Document {
	a := answer.OfCounts(result, given)
	d := document(a, nil, struct {
		*counts.Result
		Answer answer.Answer `json:"answer"`
	}{result, a}, countsView{result}.tables()...)
	if len(result.Records) > 1 {
		d.Lead = d.Named("summary").Without("layers", "flagged", "balancedness", "imbalance", "worst_floor")
	}
	return d
}

// countsView writes counts for people.
type countsView struct{ *counts.Result }

func (res countsView) tables() (tables []table.Table) {
	summary := computed(label("source"), func(s counts.Summary) any { return res.label(s.Source, s.Phase) })
	layer := computed(label("source"),
		func(l imbalance.SourceRow) any { return res.label(l.Source, counts.Phase(l.Phase)) })
	line := computed(label("source"), func(l counts.ResultReported) any { return res.label(l.Source, l.Phase) })
	if len(res.Imbalance) > 0 || len(res.Reported) == 0 {
		tables = append(tables, table.Of("imbalance", "Per layer, mean over steps", res.Imbalance,
			layer, count("layer"), label("level"), count("steps"), ratio("max/mean"), percent("imbalance"),
			ratio("balancedness"),
			real("active"), ratio("floor"), ratio("null median"), ratio("null p95"), alarming(label("flagged"), "yes"),
			count("worst"),
		).LeadBy("level", "max_over_mean").Least("balancedness", "active", "null_median", "null_p95",
			"floor", "max_over_mean"), table.Of("summary", "Over layers", res.Summary,
			summary, label("level"), count("layers"), count("flagged"), ratio("max/mean"), percent("imbalance"),
			ratio("balancedness"),
			count("worst layer"), ratio("its max/mean", "worst_max_over_mean"),
			ratio("its floor", "worst_floor")).Least("balancedness"))
	}
	if len(res.Reported) > 0 {
		tables = append(tables, table.Of("reported", "Rank load as reported by the engine", res.Reported,
			line, count("step"), count("passes"), ratio("balancedness"), ratio("max/mean")))
	}
	return tables
}

// label names a record: by the last part of its path where that tells it from the
// others, and by its phase.
func (res countsView) label(source string, phase counts.Phase) string {
	name := short(source, res.Records, func(r counts.ResultRecord) string { return r.Source })
	if phase != "" {
		name += " (" + string(phase) + ")"
	}
	return name
}
