package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
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
			ratio("balancedness"), ratio("CV", "cv"), ratio("Gini", "gini"),
			real("active"), ratio("floor"), ratio("null median"), ratio("null p95"), alarming(label("flagged"), "yes"),
			count("worst"),
		).LeadBy("level", "max_over_mean").Least("cv", "gini", "balancedness", "active", "null_median", "null_p95",
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

// FormatList is one line per format, for help.
func FormatList() string {
	var b strings.Builder
	for _, f := range counts.Formats() {
		fmt.Fprintf(&b, "  %-19s %s\n", f.ID, f.Name)
	}
	return b.String()
}

// FormatHelp describes the formats that the names are of.
func FormatHelp(names []string) string {
	var b strings.Builder
	for _, f := range counts.Formats() {
		if slices.Contains(names, f.ID) {
			fmt.Fprintf(&b, "%s: %s\n\nLooks like:\n  %s\n\nRecorded by:\n  %s\n", f.ID, f.Name, f.Header, f.Origin)
		}
	}
	return b.String()
}

// modelsResult is the JSON of models.
type modelsResult struct {
	SchemaVersion int            `json:"schema_version"`
	Kind          string         `json:"kind"` // always "models"
	Models        []router.Model `json:"models"`
}

// Models lays presets out.
func Models(models []router.Model) output.Document {
	groups := computed(label("groups"), func(m router.Model) any {
		if !m.Grouped() {
			return nil // none to choose from
		}
		return fmt.Sprintf("%d of %d", m.TopKGroups, m.Groups)
	})
	t := table.Of("models", "", models,
		label("name"), count("experts"), count("top-k"), groups, label("method"), label("bias"),
		computed(real("scale"), func(m router.Model) any { return decimal(m.Scale) }), count("hidden", "hidden_size"),
		count("intermediate", "intermediate_size"),
		count("layers"), count("MoE layers", "moe_layers"), label("logits", "logits_dtype"), label("source"))
	return output.Document{Headline: quantity.Count(len(models), "model"), Tables: []table.Table{t},
		Value: modelsResult{SchemaVersion: 1, Kind: "models", Models: models}}
}

// decimal is the float64 of the same shortest decimal text: 2.827 stays 2.827.
func decimal(x float32) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', -1, 32), 64)
	return y
}
