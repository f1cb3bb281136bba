package render

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router/quantity"
)

// Place renders judged placements.
func Place(result *place.Result) output.Document {
	res := placeView{result}
	return output.Document{Headline: res.headline(), Tables: res.tables(), Notes: res.notes(), Value: result}
}

// placeView writes placements for people.
type placeView struct{ *place.Result }

// headline is about the placement with the lowest judged max/mean, or without a judged
// one the lowest learned.
func (res placeView) headline() string {
	best := slices.MinFunc(res.Placements, func(a, b place.Placement) int {
		return cmp.Or(cmp.Compare(a.Judged, b.Judged), cmp.Compare(a.Learned, b.Learned))
	})
	text := fmt.Sprintf("%s: EPLB with %s on %s: %s", best.Verdict, quantity.Count(best.Redundant, "redundant expert"), quantity.Count(res.Ranks, "rank"), best.Reason)
	if !best.Judged.Defined() {
		text += "; learned max/mean " + quantity.Ratio(best.Learned)
	}
	return text
}

func (res placeView) notes() (notes []string) {
	for _, w := range res.Workloads {
		if w.Change > 0 {
			notes = append(notes, fmt.Sprintf("%s: %s raise the busiest rank's load by %s (max/mean %s, contiguous %s)", res.label(w.Window), quantity.Count(w.Redundant, "redundant expert"),
				quantity.Percent(w.Change), quantity.Ratio(w.Judged), quantity.Ratio(w.Contiguous)))
		}
	}
	warnings := slices.Clone(res.Warnings)
	for i := range warnings {
		warnings[i].Subject = filepath.Base(warnings[i].Subject)
	}
	return append(notes, warningNotes(warnings, nil)...)
}

func (res placeView) tables() []output.Table {
	window := computed(label("window"), func(w place.Workload) any { return res.label(w.Window) })
	judged := []output.Column{ratio("judged max/mean"), ratio("contiguous max/mean")}
	tables := []output.Table{output.Of("placements", "Placements, mean over layers and windows", res.Placements,
		slices.Concat([]output.Column{count("redundant"), ratio("learned max/mean")}, judged, []output.Column{percent("load change", "judged_load_change"), label("verdict")})...)}
	if len(res.Workloads) > 0 {
		tables = append(tables, output.Of("workloads", "Judged windows, mean over layers", res.Workloads,
			slices.Concat([]output.Column{count("redundant"), window}, judged, []output.Column{percent("load change", "judged_load_change"), ratio("null p95")})...))
	}
	if len(res.Matrix) > 0 {
		tables = append(tables, res.matrix())
	}
	return append(tables, output.Of("layers", "Per layer, mean over steps", res.Layers,
		slices.Concat([]output.Column{count("redundant"), count("layer"), ratio("learned max/mean")}, judged)...).LeadBy("judged_max_over_mean", "learned_max_over_mean"))
}

// matrix has a row for each window to learn from, and a column for each to judge on.
func (res placeView) matrix() output.Table {
	t := output.Table{Name: "matrix", Title: "max/mean, learned on the row, judged on the column", Columns: []output.Column{count("redundant"), label("learned on", "learned")}}
	row := map[[2]string]int{}
	for _, c := range res.Matrix {
		key := [2]string{fmt.Sprint(c.Redundant), c.Learned}
		at, ok := row[key]
		if !ok {
			at = len(t.Rows)
			row[key] = at
			t.Rows = append(t.Rows, []any{c.Redundant, res.label(c.Learned)})
		}
		if t.Rows[at] = append(t.Rows[at], c.MaxOverMean); at == 0 {
			t.Columns = append(t.Columns, ratio(res.label(c.Judged), c.Judged))
		}
	}
	return t
}

// label is the last part of a window's path where that tells it from the others.
func (res placeView) label(window string) string {
	base := filepath.Base(window)
	for _, w := range slices.Concat(res.Learned, res.Judged) {
		if w.Name != window && filepath.Base(w.Name) == base {
			return window
		}
	}
	return base
}
