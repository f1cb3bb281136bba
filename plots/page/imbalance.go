package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// shownRows is how many rows of a long table stand open; all are in a folded
// one below it.
const shownRows = 10

// layerImbalance is the imbalance of one layer, from a trace or from recorded counts.
type layerImbalance struct {
	From            string
	Layer           router.Whole
	Level, Quantity string
	Basis           string
	Imbalance       router.Number
	MaxOverMean     router.Number
	Floor, NullP95  router.Number
	Flagged         bool
	Worst           router.Whole
	Steps           int
}

// imbalance answers how uneven ranks and layers are, and whether that is more
// than the floor and chance allow.
func (p Page) imbalance() (section, error) {
	s := section{ID: "imbalance", Title: "How imbalanced, on which ranks and layers, above the noise floor?"}
	all := p.layerImbalances()
	if found := imbalanceSentences(all); len(found) > 0 {
		s.Answer = found[0]
		s.addList(found[1:])
	}
	if err := p.addImbalanceFigures(&s); err != nil {
		return s, err
	}
	for _, level := range []string{router.LevelRank, router.LevelExpert} {
		t := imbalanceTable(atLevel(all, level))
		t.Caption = "The layers with the largest imbalance over " + level + "s"
		t.Rows = t.Rows[:min(len(t.Rows), shownRows)]
		s.addTable(t)
	}
	if len(all) > shownRows {
		t := imbalanceTable(all)
		t.Caption, t.Folded = fmt.Sprintf("All %d rows", len(all)), true
		s.addTable(t)
	}
	return s, nil
}

func (p Page) addImbalanceFigures(s *section) error {
	if err := s.addFigure(plots.HeatMap(plots.RecordedLoads(p.recorded()...))); err != nil {
		return err
	}
	if len(p.arms) == 0 {
		return nil
	}
	heats := []plots.HeatSpec{plots.ExpertTimes(p.arms...), plots.ExpertLoads(p.arms...)}
	if p.ranks() < 2 {
		const single = "The traces hold one rank: how evenly ranks are loaded needs a trace of every rank."
		if s.Answer == "" {
			s.Answer = "Not known. " + single
		} else {
			s.addText(single)
		}
	} else {
		for _, spec := range []plots.BarSpec{plots.RankTimes(p.arms...), plots.RankLoads(p.arms...)} {
			if err := s.addFigure(plots.BarChart(spec)); err != nil {
				return err
			}
		}
		heats = append([]plots.HeatSpec{plots.RankLayerTimes(p.arms...)}, heats...)
	}
	for _, spec := range heats {
		if err := s.addFigure(plots.HeatMap(spec)); err != nil {
			return err
		}
	}
	return nil
}

// recorded lists the loads of expert statistics.
func (p Page) recorded() (out []plots.Recorded) {
	for _, in := range p.inputs {
		if in.Counts != nil && len(in.Counts.Load) > 0 {
			out = append(out, plots.Recorded{Name: shorten(in.Name, 32), Layers: in.Counts.Load})
		}
	}
	return out
}

// layerImbalances collects the imbalance of all layers, the flagged and largest
// first; undefined ones come last.
func (p Page) layerImbalances() (out []layerImbalance) {
	for _, a := range p.arms {
		for _, i := range a.Trace.Imbalance {
			out = append(out, layerImbalance{
				From: a.Name, Layer: i.Layer, Level: i.Level, Quantity: i.Quantity, Basis: basisOf(a.Trace, i),
				Imbalance: i.Imbalance, MaxOverMean: i.MaxOverMean, Floor: i.Floor, NullP95: i.NullP95,
				Flagged: i.Flagged, Worst: i.Worst, Steps: i.Steps,
			})
		}
	}
	for _, in := range p.inputs {
		if in.Counts == nil {
			continue
		}
		for _, l := range in.Counts.Imbalance {
			out = append(out, layerImbalance{
				From: base(l.Source), Layer: router.Whole(l.Layer), Level: l.Level, Quantity: imbalance.Load, Basis: recordedBasis,
				Imbalance: l.Imbalance, MaxOverMean: l.MaxOverMean, Floor: l.Floor, NullP95: l.NullP95,
				Flagged: l.Flagged, Worst: l.Worst, Steps: l.Steps,
			})
		}
	}
	slices.SortStableFunc(out, func(a, b layerImbalance) int {
		switch {
		case a.Flagged != b.Flagged && a.Flagged:
			return -1
		case a.Flagged != b.Flagged:
			return 1
		case a.Imbalance.Defined() != b.Imbalance.Defined() && a.Imbalance.Defined():
			return -1
		case a.Imbalance.Defined() != b.Imbalance.Defined():
			return 1
		}
		return cmp.Compare(b.Imbalance, a.Imbalance)
	})
	return out
}

func atLevel(all []layerImbalance, level string) (out []layerImbalance) {
	for _, u := range all {
		if u.Level == level {
			out = append(out, u)
		}
	}
	return out
}

// recordedBasis is the basis of what an engine counted; the others are nsys's.
const recordedBasis = "recorded"

// basisOf says how the numbers of an imbalance came about.
func basisOf(t *nsys.Trace, i imbalance.Row) string {
	if i.Quantity == imbalance.Load {
		return recordedBasis
	}
	if i.Level == router.LevelExpert {
		for _, e := range t.Experts {
			if e.Layer == i.Layer && e.Basis == imbalance.Allocated {
				return string(imbalance.Allocated)
			}
		}
	}
	return string(imbalance.Observed)
}

func imbalanceTable(rows []layerImbalance) table {
	t := table{Columns: slices.Concat(text("arm or source"), numeric("layer"), text("of", "basis"), numeric("imbalance", "max/mean", "floor", "null,\u00a095\u00a0%"), text("flagged"), numeric("worst", "steps"))}
	for _, u := range rows {
		flagged := cell{Text: "no"}
		if u.Flagged {
			flagged = cell{Text: "yes", Mark: bad}
		}
		t.Rows = append(t.Rows, row(u.From, u.Layer, u.Quantity+" over "+u.Level+"s", u.Basis,
			share(u.Imbalance), u.MaxOverMean, u.Floor, u.NullP95, flagged, u.Worst, u.Steps))
	}
	return t
}

// imbalanceSentences name, per source, how many layers are uneven over ranks and
// the worst one. Time comes before load: it is what steps wait for.
func imbalanceSentences(all []layerImbalance) (out []string) {
	overRanks := atLevel(all, router.LevelRank)
	slices.SortStableFunc(overRanks, func(a, b layerImbalance) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.Quantity, a.Quantity))
	})
	for from := 0; from < len(overRanks); {
		worst := overRanks[from] // within a group the order is still flagged first, largest first
		to, flagged := from, 0
		for to < len(overRanks) && overRanks[to].From == worst.From && overRanks[to].Quantity == worst.Quantity {
			if overRanks[to].Flagged {
				flagged++
			}
			to++
		}
		switch {
		case !worst.Imbalance.Defined():
		case worst.Imbalance == 0:
			out = append(out, fmt.Sprintf("%s: %s over ranks is even in %s%s.", worst.From, worst.Quantity, quantity.Count(to-from, "layer"), noise(worst)))
		default:
			out = append(out, fmt.Sprintf("%s: %s over ranks is flagged in %d of %s, worst in layer %s: rank %s has %s over the mean%s.",
				worst.From, worst.Quantity, flagged, quantity.Count(to-from, "layer"), number(worst.Layer), number(worst.Worst), share(worst.Imbalance), noise(worst)))
		}
		from = to
	}
	return out
}

// noise says what of an imbalance is no fault of the routing: its floor, and
// what chance gives. Times have neither.
func noise(u layerImbalance) string {
	var parts []string
	if u.Floor.Defined() {
		parts = append(parts, "floor "+share(u.Floor-1))
	}
	if u.NullP95.Defined() {
		parts = append(parts, "chance up to "+share(u.NullP95-1))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
