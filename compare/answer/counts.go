package answer

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
)

// OfCounts answers how uneven recorded load is. given are the records as arguments of a command.
func OfCounts(c *counts.Result, given string) Answer {
	k := knowing(caveats(c.Warnings, nil))
	s, ok := MostUneven(c)
	if !ok {
		k.reported(c)
		return k.tell("counts")
	}
	source := filepath.Base(s.Source) + when(s.Phase != "", fmt.Sprintf(" (%s)", s.Phase))
	k.know("level", s.Level, "layers", s.Layers, "source", when(len(c.Records) > 1, source))
	worst := k.loads(c, s)
	k.number("mean", "mean over layers (max/mean)", s.MaxOverMean, MaxMean, Recorded)
	k.number("worst", "worst layer", worst.MaxOverMean, MaxMean, Recorded)
	k.number("floor", "floor there", worst.Floor, MaxMean, Recorded)
	k.number("null", "by chance, 95th percentile", worst.NullP95, MaxMean, Predicted)
	experts := 0 // of the record
	for _, r := range c.Records {
		if r.Source == s.Source && experts == 0 {
			experts = max(0, int(r.Experts))
		}
	}
	k.know("costs", "costs", "keep", keeping(worst.Parts, given), "unplaced", when(s.Level == router.LevelExpert, given))
	if beyond := experts % max(1, worst.Parts); experts > 0 { // of which a placement and a trace need the slots
		copies := when(beyond > 0, fmt.Sprintf("--redundant %d ", worst.Parts-beyond)) // for experts to divide over ranks
		if !strings.Contains(given, "--axes ") {                                       // which trace does not take
			k.know("counted", strings.TrimSpace(word(s.Source)+" "+flag(given, "model")))
		}
		several := strings.ContainsAny(typed.ReplaceAllString(given, ""), "* ") // of which each may be left out
		k.know("ranks", worst.Parts, "counts", copies+given, "others", when(!several, "OTHER_COUNTS"))
	}
	return k.tell("counts")
}

// loads says how uneven the load of a record is, in the layer that it returns. A layer that is more uneven than
// the flagged ones may be so by chance.
func (k *known) loads(c *counts.Result, s counts.Summary) (worst imbalance.Row) {
	rows := rowsOf(c, s)
	flagged := slices.DeleteFunc(slices.Clone(rows), func(r imbalance.Row) bool { return !r.Flagged })
	worst = append(slices.Clone(flagged), rows...)[0]
	k.know("load", worst.MaxOverMean, "where", when(worst.Layer.Defined(), LayerName(worst.Layer)))
	switch n := len(flagged); {
	case n == 0 && router.Above(worst.MaxOverMean, worst.Floor, c.Threshold): // of few tokens
		k.know("how", "as even as chance allows")
	case n == 0:
		k.know("how", "even")
	default:
		k.know("part", fmt.Sprintf("%s %d", worst.Level, worst.Worst), "flagged", when(s.Layers > 1, fmt.Sprint(n)))
	}
	return worst
}

// MostUneven is the record with the most uneven load, over ranks where that is known.
func MostUneven(c *counts.Result) (s counts.Summary, ok bool) {
	known := slices.DeleteFunc(slices.Clone(c.Summary), func(s counts.Summary) bool {
		return !s.WorstMaxOverMean.Defined() || len(rowsOf(c, s)) == 0
	})
	if len(known) == 0 {
		return s, false
	}
	return slices.MaxFunc(known, ByLoad), true
}

// ByLoad orders records by their most uneven load, load over ranks above load over experts.
func ByLoad(a, b counts.Summary) int {
	switch ranks := a.Level == router.LevelRank; {
	case ranks == (b.Level == router.LevelRank):
		return cmp.Compare(a.WorstMaxOverMean, b.WorstMaxOverMean)
	case ranks:
		return 1
	}
	return -1
}

// rowsOf are the layers of a summary, the most uneven first.
func rowsOf(c *counts.Result, s counts.Summary) []imbalance.Row {
	return worstFirst(c.Imbalance, func(r imbalance.Row) bool {
		return r.Source == s.Source && r.Phase == string(s.Phase) && r.Level == s.Level && r.MaxOverMean.Defined()
	})
}

// reported gathers what logs say of how balanced the load was, without counts. Kinds of work that the log tells
// apart are no one average: line 1 has the one with most slots, the later of equal ones, as after a move of experts, or
// the most uneven where lines do not say.
func (k *known) reported(c *counts.Result) {
	k.know("one_rank", caveat.Text(warned(c.Warnings, counts.OneRank)))
	var kinds []counts.Reported // in sums over their lines
	for _, r := range c.Reported {
		at := slices.IndexFunc(kinds, func(of counts.Reported) bool { return of.Source == r.Source && of.Phase == r.Phase })
		if at < 0 {
			at, kinds = len(kinds), append(kinds, counts.Reported{Source: r.Source, Phase: r.Phase})
		}
		kinds[at].Passes += r.Passes
		kinds[at].MaxOverMean += router.Number(r.Passes) * r.MaxOverMean
		kinds[at].Slots += r.Slots
	}
	var lead counts.Reported
	for _, of := range kinds {
		of.MaxOverMean /= router.Number(of.Passes)
		label := "rank load" + when(of.Phase != "", " of "+string(of.Phase)) + " (max/mean)"
		k.number("reported", label, of.MaxOverMean, MaxMean, Claimed)
		if lead.Source == "" || of.Slots > lead.Slots || of.Slots == lead.Slots &&
			(of.Slots > 0 || of.MaxOverMean > lead.MaxOverMean) {
			lead = of
		}
	}
	k.know("reported", positive(lead.MaxOverMean), "phase", string(lead.Phase), "passes", positive(lead.Passes))
}
