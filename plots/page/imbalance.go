package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// shownRows is how many rows of a long table stand open; all are in a folded
// one below it.
const shownRows = 10

// imbalance answers how uneven ranks and layers are, and whether that is more
// than the floor and chance allow.
func (p Page) imbalance() section {
	s := section{ID: "imbalance", Title: "How uneven are ranks and layers, above floor and chance?"}
	all := p.rows()
	if found := imbalanceSentences(all); len(found) > 0 {
		s.Answer = found[0]
		s.addList(found[1:])
	}
	p.addImbalanceFigures(&s)
	for _, level := range []string{router.LevelRank, router.LevelExpert} {
		t := imbalanceTable(atLevel(all, level))
		t.Caption = "Largest imbalance over " + level + "s, by layer"
		t.Rows = t.Rows[:min(len(t.Rows), shownRows)]
		s.addTable(t)
	}
	if len(all) > shownRows {
		t := imbalanceTable(all)
		t.Caption, t.Folded = fmt.Sprintf("All %d rows", len(all)), true
		s.addTable(t)
	}
	return s
}

func (p Page) addImbalanceFigures(s *section) {
	s.addFigure(plots.HeatMap(plots.RecordedLoads(p.recorded()...)))
	if len(p.arms) == 0 {
		return
	}
	if slices.ContainsFunc(p.compared, diff.Comparison.UnequalSteps) {
		s.addText("The figures are over each arm's own steps, which hold different numbers of tokens: compare ranks and layers within an arm. The tables that compare the arms are over steps with equally many tokens, where there are any.")
	}
	heats := []plots.HeatSpec{plots.ExpertTimes(p.arms...), plots.ExpertLoads(p.arms...)}
	if p.ranks() < 2 {
		const single = "The traces hold one rank; imbalance over ranks needs a trace of every rank."
		if s.Answer == "" {
			s.Answer = "Unknown. " + single
		} else {
			s.addText(single)
		}
	} else {
		for _, spec := range []plots.BarSpec{plots.RankTimes(p.arms...), plots.RankLoads(p.arms...)} {
			s.addFigure(plots.BarChart(spec))
		}
		heats = append([]plots.HeatSpec{plots.RankLayerTimes(p.arms...)}, heats...)
	}
	for _, spec := range heats {
		s.addFigure(plots.HeatMap(spec))
	}
}

// recorded lists the loads of expert statistics.
func (p Page) recorded() (out []plots.Recorded) {
	for _, in := range p.counts() {
		if len(in.Counts.Load) > 0 {
			out = append(out, plots.Recorded{Name: shorten(in.Name, 32), Layers: in.Counts.Load})
		}
	}
	return out
}

// rows are the imbalance of all layers of traces and statistics, the flagged and
// largest first; undefined ones come last.
func (p Page) rows() (out []imbalance.SourceRow) {
	for _, a := range p.arms {
		for _, r := range a.Trace.Imbalance {
			out = append(out, imbalance.SourceRow{Source: a.Name, Row: r})
		}
	}
	for _, in := range p.counts() {
		for _, r := range in.Counts.Imbalance {
			name := strings.TrimSpace(base(r.Source) + " " + r.Phase)
			out = append(out, imbalance.SourceRow{Source: name, Row: r.Row})
		}
	}
	first := func(a, b bool) int {
		switch {
		case a == b:
			return 0
		case a:
			return -1
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b imbalance.SourceRow) int {
		return cmp.Or(first(a.Flagged, b.Flagged), first(a.Imbalance.Defined(), b.Imbalance.Defined()), cmp.Compare(b.Imbalance, a.Imbalance))
	})
	return out
}

func atLevel(all []imbalance.SourceRow, level string) []imbalance.SourceRow {
	return slices.DeleteFunc(slices.Clone(all), func(r imbalance.SourceRow) bool { return r.Level != level })
}

func imbalanceTable(rows []imbalance.SourceRow) table {
	t := table{Columns: columns("arm or source", "#layer", "of", "basis", "#imbalance", "#max/mean", "#floor", "#null p95", "flagged", "#worst", "#steps")}
	for _, u := range rows {
		t.add(u.Source, u.Layer, u.Quantity+" over "+u.Level+"s", string(u.Basis),
			quantity.Percent(u.Imbalance), u.MaxOverMean, u.Floor, u.NullP95, yesNo(u.Flagged, bad, plain), u.Worst, u.Steps)
	}
	return t
}

// imbalanceSentences name, per source, how many layers are uneven over ranks and
// the worst one. Time comes before load: it is what steps wait for.
func imbalanceSentences(all []imbalance.SourceRow) (out []string) {
	overRanks := atLevel(all, router.LevelRank)
	slices.SortStableFunc(overRanks, func(a, b imbalance.SourceRow) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(b.Quantity, a.Quantity))
	})
	for from := 0; from < len(overRanks); {
		worst := overRanks[from] // within a group the order is still flagged first, largest first
		to, flagged := from, 0
		for to < len(overRanks) && overRanks[to].Source == worst.Source && overRanks[to].Quantity == worst.Quantity {
			if overRanks[to].Flagged {
				flagged++
			}
			to++
		}
		switch {
		case !worst.Imbalance.Defined():
		case worst.Imbalance == 0:
			out = append(out, fmt.Sprintf("%s: %s over ranks is even in %s%s.", worst.Source, worst.Quantity, quantity.Count(to-from, "layer"), noise(worst)))
		default:
			out = append(out, fmt.Sprintf("%s: %s over ranks is flagged in %d of %s, worst in layer %s: rank %s has %s over the mean%s.",
				worst.Source, worst.Quantity, flagged, quantity.Count(to-from, "layer"), number(worst.Layer), number(worst.Worst), quantity.Percent(worst.Imbalance), noise(worst)))
		}
		from = to
	}
	return out
}

// noise is the part of an imbalance that no routing avoids: its floor, and what chance
// gives. Times have neither.
func noise(u imbalance.SourceRow) string {
	var parts []string
	if u.Floor.Defined() {
		parts = append(parts, "floor "+quantity.Percent(u.Floor-1))
	}
	if u.NullP95.Defined() {
		parts = append(parts, "chance up to "+quantity.Percent(u.NullP95-1))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
