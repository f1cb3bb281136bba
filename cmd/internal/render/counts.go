package render

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Counts renders judged expert statistics.
func Counts(result *source.Counts) output.Document {
	res := countsView{result}
	return output.Document{Headline: res.headline(), Tables: res.tables(), Notes: res.notes(), Value: result}
}

// countsView writes counts for people.
type countsView struct{ *source.Counts }

func (res countsView) headline() string {
	if len(res.Summary) > 0 {
		return strings.Join(res.summarySentences(), "\n")
	}
	var parts []string
	for _, phase := range []counts.Phase{"", counts.Prefill, counts.Decode} {
		var sum router.Number
		n := 0
		for _, line := range res.Reported {
			if line.Phase == phase {
				sum += line.MaxOverMean
				n++
			}
		}
		if n > 0 {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s mean %s (%s)", phase, quantity.Ratio(sum/router.Number(n)), quantity.Count(n, "line"))))
		}
	}
	if len(parts) > 0 {
		return fmt.Sprintf("reported rank load max/mean: %s; the engine recorded no counts to verify it", strings.Join(parts, ", "))
	}
	return "no load recorded"
}

// summarySentences is one per source, the most uneven first: of the rank load, or else of
// the experts'.
func (res countsView) summarySentences() []string {
	var first []source.CountsSummary
	for _, s := range res.Summary { // ranks before experts
		if !slices.ContainsFunc(first, func(f source.CountsSummary) bool { return f.Source == s.Source && f.Phase == s.Phase }) {
			first = append(first, s)
		}
	}
	slices.SortStableFunc(first, func(a, b source.CountsSummary) int { return cmp.Compare(b.MaxOverMean, a.MaxOverMean) })
	sentences := make([]string, len(first))
	for i, s := range first {
		sentences[i] = fmt.Sprintf("%s load max/mean: mean %s (%s), worst %s (layer %d, floor %s); %s flagged", s.Level, quantity.Ratio(s.MaxOverMean),
			quantity.Count(s.Layers, "layer"), quantity.Ratio(s.WorstMaxOverMean), s.WorstLayer, quantity.Ratio(s.WorstFloor), quantity.Count(s.Flagged, "layer"))
		if len(res.Records) > 1 {
			sentences[i] = res.label(s.Source, s.Phase) + ": " + sentences[i]
		}
	}
	if len(first) > 1 {
		sentences[0] = fmt.Sprintf("most uneven of %d: %s", len(first), sentences[0])
	}
	return sentences
}

func (res countsView) notes() []string {
	warnings := slices.Clone(res.Warnings)
	for i := range warnings {
		warnings[i].Subject = res.label(warnings[i].Subject, "")
	}
	return warningNotes(warnings, nil)
}

// few lists the first two names and counts the rest.
func few(names []string) string {
	if more := len(names) - 2; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:2], ", "), more)
	}
	return strings.Join(names, ", ")
}

func (res countsView) tables() (tables []output.Table) {
	summary := computed(label("source"), func(s source.CountsSummary) any { return res.label(s.Source, s.Phase) })
	layer := computed(label("source"), func(l imbalance.SourceRow) any { return res.label(l.Source, counts.Phase(l.Phase)) })
	traffic := computed(label("source"), func(l source.CountsTraffic) any { return res.label(l.Source, l.Phase) })
	line := computed(label("source"), func(l source.CountsReported) any { return res.label(l.Source, l.Phase) })
	if len(res.Imbalance) > 0 || len(res.Reported) == 0 {
		tables = append(tables, output.Of("imbalance", "Per layer, mean over steps", res.Imbalance,
			layer, count("layer"), label("level"), count("steps"), ratio("max/mean"), percent("imbalance"), ratio("balancedness"), ratio("CV", "cv"), ratio("Gini", "gini"),
			real("active"), ratio("floor"), ratio("null median"), ratio("null p95"), alarming(label("flagged"), "yes"), count("worst"),
		).LeadBy("level", "max_over_mean").Least("cv", "gini", "balancedness", "active", "null_median", "null_p95", "floor", "max_over_mean"), output.Of("summary", "Over layers", res.Summary,
			summary, label("level"), count("layers"), count("flagged"), ratio("max/mean"), percent("imbalance"), ratio("balancedness"),
			count("worst layer"), ratio("its max/mean", "worst_max_over_mean"), ratio("its floor", "worst_floor")).Least("balancedness"))
	}
	if len(res.Traffic) > 0 {
		tables = append(tables, output.Of("traffic", "Traffic between ranks, mean over steps", res.Traffic,
			traffic, count("layer"), percent("off-rank"), ratio("pair max/mean"), ratio("sent max/mean")))
	}
	if len(res.Reported) > 0 {
		tables = append(tables, output.Of("reported", "Rank load as reported by the engine", res.Reported,
			line, count("step"), ratio("balancedness"), ratio("max/mean")))
	}
	return tables
}

// label names a record: by the last part of its path where that tells it from the
// others, and by its phase.
func (res countsView) label(source string, phase counts.Phase) string {
	name := filepath.Base(source)
	for _, r := range res.Records {
		if r.Source != source && filepath.Base(r.Source) == name {
			name = source
		}
	}
	if phase != "" {
		name += " (" + string(phase) + ")"
	}
	return name
}
