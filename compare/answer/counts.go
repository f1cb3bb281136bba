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
	k := knowing(caveats(byFile(c.Warnings), nil))
	s, ok := MostUneven(c)
	if !ok {
		return k.tell(k.reported(c))
	}
	k.basis = fmt.Sprintf("recorded load over %ss · %s", s.Level, quantity.Count(s.Layers, "layer"))
	if len(c.Records) > 1 {
		k.basis += " of " + recordOf(s)
		k.know("source", recordOf(s))
	}
	k.basis += leftOut(c.Warnings)
	line, worst := k.loads(c, s)
	k.number("mean", "mean over layers (max/mean)", s.MaxOverMean, MaxMean, Recorded)
	k.number("worst", "worst layer", worst.MaxOverMean, MaxMean, Recorded)
	k.number("floor", "floor there", worst.Floor, MaxMean, Recorded)
	k.number("null", "by chance, 95th percentile", worst.NullP95, MaxMean, Predicted)
	if s.Level == router.LevelExpert {
		k.know("unplaced", given, "experts_alone", "experts")
	} else {
		k.know("ranks", worst.Parts, "keep", worst.Parts, "counts", dividing(c, s, worst.Parts)+given)
	}
	return k.tell(line)
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

// loads picks the line of a record, and the layer that it names. A layer that is more uneven than the flagged
// ones may be so by chance.
func (k *known) loads(c *counts.Result, s counts.Summary) (line string, worst imbalance.Row) {
	rows := rowsOf(c, s)
	flagged := slices.DeleteFunc(slices.Clone(rows), func(r imbalance.Row) bool { return !r.Flagged })
	worst = append(slices.Clone(flagged), rows...)[0]
	k.know("level", s.Level, "load", worst.MaxOverMean, "where", LayerName(nil, worst.Layer),
		"part", fmt.Sprintf("%s %d", worst.Level, worst.Worst))
	switch n := len(flagged); {
	case n == 0:
		k.know("how", "even")
		if router.Above(worst.MaxOverMean, worst.Floor, c.Threshold) { // of few tokens
			k.know("how", "as even as chance allows")
		}
		if quantity.Decimals(worst.MaxOverMean, 2) == "1.00" {
			k.know("where", "")
		}
		return "counts.even", worst
	case s.Layers < 2:
	case n == s.Layers && n == 2:
		k.know("flagged", "both layers are")
	case n == s.Layers:
		k.know("flagged", fmt.Sprintf("all %d layers are", n))
	default:
		k.know("flagged", fmt.Sprintf("%d of %s %s", n, quantity.Count(s.Layers, "layer"),
			map[bool]string{true: "is", false: "are"}[n == 1]))
	}
	return "counts.uneven", worst
}

// MostUneven is the record with the most uneven load, over ranks where that is known.
func MostUneven(c *counts.Result) (s counts.Summary, ok bool) {
	for _, o := range c.Summary {
		ranks, before := o.Level == router.LevelRank, s.Level == router.LevelRank
		if o.WorstMaxOverMean.Defined() && len(rowsOf(c, o)) > 0 &&
			(!ok || ranks && !before || ranks == before && o.WorstMaxOverMean > s.WorstMaxOverMean) {
			s, ok = o, true
		}
	}
	return s, ok
}

// rowsOf are the layers of a summary, the most uneven first.
func rowsOf(c *counts.Result, s counts.Summary) (rows []imbalance.Row) {
	for _, r := range c.Imbalance {
		if r.Source == s.Source && r.Phase == string(s.Phase) && r.Level == s.Level && r.MaxOverMean.Defined() {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b imbalance.Row) int { return cmp.Compare(b.MaxOverMean, a.MaxOverMean) })
	return rows
}

// reported picks the line of logs that say how balanced the load was, without counts. Kinds of work
// that the log tells apart are no one average: line 1 has the most uneven.
func (k *known) reported(c *counts.Result) string {
	line := "counts.none"
	for _, w := range c.Warnings {
		if w.Code == counts.OneRank {
			k.know("one_rank", caveat.Text(w))
			line = "counts.one_rank"
		}
	}
	type kind struct {
		source string
		phase  counts.Phase
	}
	var kinds []kind
	passes, totals := map[kind]router.Number{}, map[kind]router.Number{}
	for _, r := range c.Reported {
		of := kind{r.Source, r.Phase}
		if !slices.Contains(kinds, of) {
			kinds = append(kinds, of)
		}
		passes[of] += router.Number(r.Passes)
		totals[of] += router.Number(r.Passes) * r.MaxOverMean
	}
	worst := router.Number(0)
	for _, of := range kinds {
		mean, label := totals[of]/passes[of], "rank load"
		if of.phase != "" {
			label += " of " + string(of.phase)
		}
		k.number("reported", label+" (max/mean)", mean, MaxMean, Claimed)
		if mean > worst {
			worst, line = mean, "counts.reported"
			k.know("reported", mean, "phase", string(of.phase))
			k.basis = "claimed by the engine over " + quantity.Count(int(passes[of]), "pass")
		}
	}
	return line
}
