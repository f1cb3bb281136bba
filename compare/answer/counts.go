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
	a := Answer{Numbers: []Number{}, Reasons: []string{}, Next: []Step{}, Caveats: caveats(byFile(c.Warnings),
		caveat.SeverityOf)}
	s, ok := mostUneven(c)
	if !ok {
		a.reported(c)
		return a
	}
	rows := rowsOf(c, s)
	flagged := slices.DeleteFunc(slices.Clone(rows), func(r imbalance.Row) bool { return !r.Flagged })
	worst := a.loads(c, s, rows, flagged)
	a.Basis = fmt.Sprintf("recorded load over %ss · %s", s.Level, quantity.Count(s.Layers, "layer"))
	a.Numbers = append(a.Numbers, NumberOf("mean over layers (max/mean)", s.MaxOverMean, MaxMean, Recorded),
		NumberOf("worst layer", worst.MaxOverMean, MaxMean, Recorded),
		NumberOf("floor there", worst.Floor, MaxMean, Recorded))
	if worst.NullP95.Defined() {
		a.Numbers = append(a.Numbers, NumberOf("by chance, 95th percentile", worst.NullP95, MaxMean, Predicted))
	}
	a.Numbers = slices.DeleteFunc(a.Numbers, func(n Number) bool { return !n.Value.Defined() })
	if text, ok := busiest(s.Level, rows); ok && len(flagged) > 1 {
		a.Reasons = append(a.Reasons, text)
	}
	if s.Level == router.LevelRank && a.Verdict == Uneven {
		a.Next = append(a.Next, Step{"Find a better placement, judged on other counts.",
			fmt.Sprintf("moebalance place --ep %d --judge OTHER_COUNTS %s", worst.Parts, given)})
	}
	if s.Level == router.LevelExpert {
		a.Reasons = append(a.Reasons,
			"No load over two or more ranks is known, so this is the load of experts; --ep gives the ranks.")
		a.Next = append(a.Next, Step{"Say how many ranks share the experts.", "moebalance counts --ep RANKS " + given})
	}
	return a
}

// loads says how uneven the rows of a record are, and by which row.
func (a *Answer) loads(c *counts.Result, s counts.Summary, rows, flagged []imbalance.Row) (worst imbalance.Row) {
	worst = rows[0]
	where := ""
	if len(c.Records) > 1 {
		where = " of " + filepath.Base(s.Source)
		if s.Phase != "" {
			where += " (" + string(s.Phase) + ")"
		}
	}
	switch {
	case len(flagged) == 0:
		even := "even"
		if router.Above(worst.MaxOverMean, worst.Floor, c.Threshold) { // of few tokens
			even = "as even as chance allows"
		}
		most, in := quantity.Decimals(worst.MaxOverMean, 2), ""
		if most != "1.00" {
			in = " in " + LayerName(nil, worst.Layer)
		}
		a.Verdict, a.Line = Even, fmt.Sprintf("The %s load is %s: at most %s × the mean%s%s.", s.Level, even, most, in,
			where)
	case len(flagged) == s.Layers && s.Layers > 1:
		a.Verdict, a.Line = Uneven, fmt.Sprintf("%s gets %s × the mean load in layer %d%s; %s are uneven.", part(worst),
			quantity.Decimals(worst.MaxOverMean, 2), worst.Layer, where, all(s.Layers))
	default:
		worst = flagged[0] // a more uneven layer may be so by chance
		a.Verdict, a.Line = Uneven, fmt.Sprintf("%s gets %s × the mean load in layer %d%s", part(worst),
			quantity.Decimals(worst.MaxOverMean, 2), worst.Layer, where)
		if be := map[bool]string{true: "is", false: "are"}[len(flagged) == 1]; s.Layers > 1 {
			a.Line += fmt.Sprintf("; %d of %s %s uneven", len(flagged), quantity.Count(s.Layers, "layer"), be)
		}
		a.Line += "."
	}
	return worst
}

// mostUneven is the record with the most uneven load, over ranks where that is known.
func mostUneven(c *counts.Result) (s counts.Summary, ok bool) {
	var first []counts.Summary
	for _, s := range c.Summary { // ranks before experts
		if !slices.ContainsFunc(first, func(f counts.Summary) bool {
			return f.Source == s.Source &&
				f.Phase == s.Phase
		}) {
			first = append(first, s)
		}
	}
	first = slices.DeleteFunc(first, func(f counts.Summary) bool { return !f.WorstMaxOverMean.Defined() })
	if slices.ContainsFunc(first, func(f counts.Summary) bool { return f.Level == router.LevelRank }) {
		first = slices.DeleteFunc(first, func(f counts.Summary) bool { return f.Level != router.LevelRank })
	}
	if len(first) == 0 {
		return s, false
	}
	return slices.MaxFunc(first,
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

func part(r imbalance.Row) string { return fmt.Sprintf("%s %d", capital(r.Level), r.Worst) }

func all(layers int) string {
	if layers == 2 {
		return "both layers"
	}
	return fmt.Sprintf("all %d layers", layers)
}

// busiest is which part is the busiest in how many layers; not ok where that is in few.
func busiest(level string, rows []imbalance.Row) (text string, ok bool) {
	most, layers := mostOften(rows, func(r imbalance.Row) router.OptInt { return r.Worst })
	return fmt.Sprintf("%s %d is the busiest in %d of %s.", capital(level), most, layers,
		quantity.Count(len(rows), "layer")), 4*layers > len(rows) && len(rows) > 2
}

// reported is the answer of logs that say how balanced the load was, without counts.
func (a *Answer) reported(c *counts.Result) {
	a.Verdict, a.Line = NoAnswer, "No answer: no load is recorded."
	var passes, total router.Number
	for _, r := range c.Reported {
		passes, total = passes+router.Number(r.Passes), total+router.Number(r.Passes)*r.MaxOverMean
	}
	if mean := total / passes; passes > 0 {
		a.Line = fmt.Sprintf("The engine reports a rank load of %s × the mean; it recorded no counts.",
			quantity.Decimals(mean, 2))
		a.Basis = "claimed by the engine over " + quantity.Count(int(passes), "pass")
		a.Numbers = append(a.Numbers, NumberOf("rank load (max/mean)", mean, MaxMean, Claimed))
	}
}
