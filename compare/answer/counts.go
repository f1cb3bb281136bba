package answer

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// OfCounts answers how uneven recorded load is. given are the records as arguments of a command.
func OfCounts(c *counts.Result, given string) Answer {
	a := answering(caveats(byFile(c.Warnings), caveat.SeverityOf))
	s, ok := MostUneven(c)
	if !ok {
		a.reported(c)
		a.next("counts")
		return a
	}
	rows := rowsOf(c, s)
	flagged := slices.DeleteFunc(slices.Clone(rows), func(r imbalance.Row) bool { return !r.Flagged })
	worst := a.loads(c, s, rows, flagged)
	a.Basis = fmt.Sprintf("recorded load over %ss · %s", s.Level, quantity.Count(s.Layers, "layer"))
	if len(c.Records) > 1 {
		a.Basis += " of " + recordOf(s)
	}
	a.Basis += leftOut(c.Warnings)
	a.number("mean over layers (max/mean)", s.MaxOverMean, MaxMean, Recorded)
	a.number("worst layer", worst.MaxOverMean, MaxMean, Recorded)
	a.number("floor there", worst.Floor, MaxMean, Recorded)
	a.number("by chance, 95th percentile", worst.NullP95, MaxMean, Predicted)
	switch {
	case s.Level == router.LevelExpert:
		a.because("why.experts")
		a.next("ep", "given", given)
	case a.Verdict == Uneven:
		a.next("place", "ranks", worst.Parts, "given", dividing(c, s, worst.Parts)+given)
	default:
		a.next("keep", "ranks", worst.Parts)
	}
	return a
}

// dividing are the fewest copies with which the experts of a record divide over ranks, as an argument of place: 32
// experts on 5 ranks → "--redundant 3 "; empty where they do without.
func dividing(c *counts.Result, s counts.Summary, ranks int) string {
	for _, r := range c.Records {
		if more := int(r.Experts) % ranks; r.Source == s.Source && r.Experts > 0 && more > 0 {
			return fmt.Sprintf("--redundant %d ", ranks-more)
		}
	}
	return ""
}

// recordOf names the record of a summary: its file, and its phase.
func recordOf(s counts.Summary) string {
	if s.Phase == "" {
		return filepath.Base(s.Source)
	}
	return fmt.Sprintf("%s (%s)", filepath.Base(s.Source), s.Phase)
}

// mostUnsaid is the share of passes that line 2 need not mention.
const mostUnsaid = 0.05

// leftOut says how much of the passes is not counted.
func leftOut(warnings []router.Warning) (text string) {
	for _, w := range warnings {
		number := func(name string) float64 { v, _ := w.Args[name].(float64); return v }
		if w.Code == counts.Incomplete && number("excluded") > mostUnsaid*number("passes") {
			text += fmt.Sprintf(" · %s of the passes left out",
				quantity.Percent(router.Number(number("excluded")/number("passes"))))
		}
	}
	return text
}

// loads says how uneven the rows of a record are, and by which row. A layer that is more uneven than
// the flagged ones may be so by chance.
func (a *Answer) loads(c *counts.Result, s counts.Summary, rows, flagged []imbalance.Row) (worst imbalance.Row) {
	source, worst := "", rows[0]
	if len(c.Records) > 1 {
		source = recordOf(s)
	}
	load := func(r imbalance.Row) string { return quantity.Decimals(r.MaxOverMean, 2) }
	if len(flagged) == 0 {
		how, where := "even", ""
		if router.Above(worst.MaxOverMean, worst.Floor, c.Threshold) { // of few tokens
			how = "as even as chance allows"
		}
		if load(worst) != "1.00" {
			where = LayerName(nil, worst.Layer)
		}
		a.say(Even, "counts.even", "level", s.Level, "how", how, "load", load(worst), "where", where, "source", source)
		return worst
	}
	many := fmt.Sprintf("%d of %s %s", len(flagged), quantity.Count(s.Layers, "layer"), be(len(flagged)))
	switch {
	case s.Layers < 2:
		many = ""
	case len(flagged) < s.Layers:
	case s.Layers == 2:
		many = "both layers are"
	default:
		many = fmt.Sprintf("all %d layers are", s.Layers)
	}
	worst = flagged[0]
	a.say(Uneven, "counts.uneven", "part", fmt.Sprintf("%s %d", capital(worst.Level), worst.Worst), "load", load(worst),
		"where", LayerName(nil, worst.Layer), "source", source, "flagged", many)
	return worst
}

// MostUneven is the record with the most uneven load, over ranks where that is known.
func MostUneven(c *counts.Result) (s counts.Summary, ok bool) {
	known := slices.DeleteFunc(slices.Clone(c.Summary), func(s counts.Summary) bool { return !s.WorstMaxOverMean.Defined() || len(rowsOf(c, s)) == 0 })
	ranks := slices.DeleteFunc(slices.Clone(known), func(s counts.Summary) bool { return s.Level != router.LevelRank })
	if len(ranks) > 0 {
		known = ranks
	}
	if len(known) == 0 {
		return s, false
	}
	return slices.MaxFunc(known,
		func(a, b counts.Summary) int { return cmp.Compare(a.WorstMaxOverMean, b.WorstMaxOverMean) }), true
}

// rowsOf are the layers of a summary, the most uneven first.
func rowsOf(c *counts.Result, s counts.Summary) (rows []imbalance.Row) {
	for _, r := range c.Imbalance {
		if r.Source == s.Source && r.Phase == string(s.Phase) && r.Level == s.Level && r.MaxOverMean.Defined() {
			rows = append(rows, r.Row)
		}
	}
	slices.SortStableFunc(rows, func(a, b imbalance.Row) int { return cmp.Compare(b.MaxOverMean, a.MaxOverMean) })
	return rows
}

// reported is the answer of logs that say how balanced the load was, without counts. Kinds of work
// that the log tells apart are no one average: line 1 has the most uneven.
func (a *Answer) reported(c *counts.Result) {
	a.say(NoAnswer, "counts.none")
	for _, w := range c.Warnings {
		if w.Code == counts.OneRank {
			a.say(NoAnswer, "counts.one_rank", "why", caveat.Text(w))
		}
	}
	type kind struct {
		source string
		phase  counts.Phase
	}
	var kinds []kind
	passes, totals := map[kind]router.Number{}, map[kind]router.Number{}
	for _, r := range c.Reported {
		k := kind{r.Source, r.Phase}
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
		passes[k] += router.Number(r.Passes)
		totals[k] += router.Number(r.Passes) * r.MaxOverMean
	}
	worst := router.Number(0)
	for _, k := range kinds {
		mean, of := totals[k]/passes[k], ""
		if k.phase != "" {
			of = " of " + string(k.phase)
		}
		a.number("rank load"+of+" (max/mean)", mean, MaxMean, Claimed)
		if mean > worst {
			worst = mean
			a.say(NoAnswer, "counts.reported", "of", string(k.phase), "load", quantity.Decimals(mean, 2))
			a.Basis = "claimed by the engine over " + quantity.Count(int(passes[k]), "pass")
		}
	}
}
