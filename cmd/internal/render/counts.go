package render

import (
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
	d := output.Document{Headline: res.headline(), Notes: res.notes(), Value: result}
	if len(res.Imbalance) > 0 || len(res.Reported) == 0 {
		d.Tables = append(d.Tables, res.layerTable(), res.summaryTable())
	}
	if len(res.Traffic) > 0 {
		d.Tables = append(d.Tables, res.trafficTable())
	}
	if len(res.Reported) > 0 {
		d.Tables = append(d.Tables, res.reportedTable())
	}
	return d
}

// countsView writes counts for people.
type countsView struct{ *source.Counts }

func (res countsView) headline() string {
	if len(res.Summary) > 0 {
		return strings.Join(res.summarySentences(), "; ")
	}
	if n := len(res.Reported); n > 0 {
		var sum router.Number
		for _, line := range res.Reported {
			sum += line.MaxOverMean
		}
		return fmt.Sprintf("reported rank load max/mean: mean %s (%s); the engine recorded no counts to verify it", quantity.Ratio(sum/router.Number(n)), quantity.Count(n, "line"))
	}
	return "no load recorded"
}

// summarySentences is one per source: of the rank load, or else of the experts'.
func (res countsView) summarySentences() []string {
	var sentences []string
	seen := map[source.CountsRecord]bool{}
	for _, s := range res.Summary { // ranks before experts
		record := source.CountsRecord{Source: s.Source, Phase: s.Phase}
		if seen[record] {
			continue
		}
		seen[record] = true
		sentence := fmt.Sprintf("%s load max/mean: mean %s (%s), worst %s (layer %d, floor %s); %s flagged", s.Level, quantity.Ratio(s.MaxOverMean),
			quantity.Count(s.Layers, "layer"), quantity.Ratio(s.WorstMaxOverMean), s.WorstLayer, quantity.Ratio(s.WorstFloor), quantity.Count(s.Flagged, "layer"))
		if len(res.Records) > 1 {
			sentence = res.label(s.Source, s.Phase) + ": " + sentence
		}
		sentences = append(sentences, sentence)
	}
	return sentences
}

// notes are the warnings, those of one text together.
func (res countsView) notes() []string {
	var notes []string
	subjects := map[string][]string{}
	for _, w := range res.Warnings {
		if name := res.label(w.Subject, ""); !slices.Contains(subjects[w.Text], name) {
			subjects[w.Text] = append(subjects[w.Text], name)
		}
	}
	for _, w := range res.Warnings {
		if names := subjects[w.Text]; names != nil {
			notes = append(notes, few(names)+": "+w.Text)
			delete(subjects, w.Text)
		}
	}
	return notes
}

// few lists the first two names and counts the rest.
func few(names []string) string {
	if more := len(names) - 2; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:2], ", "), more)
	}
	return strings.Join(names, ", ")
}

func (res countsView) layerTable() output.Table {
	return output.Table{Name: "imbalance", Title: "Per layer, mean over steps", Columns: []output.Column{
		{Name: "source"}, {Name: "layer", Kind: output.Count}, {Name: "level"}, {Name: "steps", Kind: output.Count},
		{Name: "max/mean", Key: "max_over_mean", Kind: output.Ratio}, {Name: "imbalance", Kind: output.Percent},
		{Name: "balancedness", Kind: output.Ratio}, {Name: "CV", Key: "cv", Kind: output.Ratio}, {Name: "Gini", Key: "gini", Kind: output.Ratio},
		{Name: "active", Kind: output.Real}, {Name: "floor", Kind: output.Ratio},
		{Name: "null median", Key: "null_median", Kind: output.Ratio}, {Name: "null p95", Key: "null_p95", Kind: output.Ratio},
		{Name: "flagged"}, {Name: "worst", Kind: output.Count},
	}, Rows: output.Rows(res.Imbalance, func(l imbalance.SourceRow) []any {
		return []any{
			res.label(l.Source, counts.Phase(l.Phase)), l.Layer, l.Level, l.Steps, l.MaxOverMean, l.Imbalance, l.Balancedness, l.CV, l.Gini,
			l.Active, l.Floor, l.NullMedian, l.NullP95, l.Flagged, l.Worst,
		}
	})}
}

func (res countsView) summaryTable() output.Table {
	return output.Table{Name: "summary", Title: "Over layers", Columns: []output.Column{
		{Name: "source"}, {Name: "level"}, {Name: "layers", Kind: output.Count}, {Name: "flagged", Kind: output.Count},
		{Name: "max/mean", Key: "max_over_mean", Kind: output.Ratio}, {Name: "imbalance", Kind: output.Percent},
		{Name: "balancedness", Kind: output.Ratio}, {Name: "worst layer", Key: "worst_layer", Kind: output.Count},
		{Name: "its max/mean", Key: "worst_max_over_mean", Kind: output.Ratio}, {Name: "its floor", Key: "worst_floor", Kind: output.Ratio},
	}, Rows: output.Rows(res.Summary, func(s source.CountsSummary) []any {
		return []any{res.label(s.Source, s.Phase), s.Level, s.Layers, s.Flagged, s.MaxOverMean, s.Imbalance, s.Balancedness, s.WorstLayer, s.WorstMaxOverMean, s.WorstFloor}
	})}
}

func (res countsView) trafficTable() output.Table {
	return output.Table{Name: "traffic", Title: "Traffic between ranks, mean over steps", Columns: []output.Column{
		{Name: "source"}, {Name: "layer", Kind: output.Count}, {Name: "off-rank", Key: "off_rank", Kind: output.Percent},
		{Name: "pair max/mean", Key: "pair_max_over_mean", Kind: output.Ratio}, {Name: "sent max/mean", Key: "sent_max_over_mean", Kind: output.Ratio},
	}, Rows: output.Rows(res.Traffic, func(l source.CountsTraffic) []any {
		return []any{res.label(l.Source, l.Phase), l.Layer, l.OffRank, l.PairMaxOverMean, l.SentMaxOverMean}
	})}
}

func (res countsView) reportedTable() output.Table {
	return output.Table{Name: "reported", Title: "Rank load as reported by the engine", Columns: []output.Column{
		{Name: "source"}, {Name: "step", Kind: output.Count}, {Name: "balancedness", Kind: output.Ratio}, {Name: "max/mean", Key: "max_over_mean", Kind: output.Ratio},
	}, Rows: output.Rows(res.Reported, func(line source.CountsReported) []any {
		return []any{res.label(line.Source, ""), line.Step, line.Balancedness, line.MaxOverMean}
	})}
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
