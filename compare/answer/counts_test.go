package answer

import (
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
)

// The answer is about the most uneven record, over ranks where that is known of any; of its layers about the most
// uneven one that is flagged, else about the most uneven one, which chance may have made so.
func TestHeadlineOfCounts(t *testing.T) {
	row := func(source, level string, layer router.OptInt, most router.Number, flagged bool) imbalance.Row {
		return imbalance.Row{Source: source, Level: level, Quantity: imbalance.Load, Layer: layer, MaxOverMean: most,
			Floor: 1, Flagged: flagged, Parts: 4, Worst: 2}
	}
	const rank, expert = router.LevelRank, router.LevelExpert
	for line, rows := range map[string][]imbalance.Row{
		"Rank 2 gets 1.80 × the mean load in layer 4 of b": {row("a", expert, 1, 9, true), row("a", rank, 2, 1.5, true),
			row("b", expert, 3, 7, true), row("b", rank, 4, 1.8, true)},
		"Rank 2 gets 1.80 × the mean load in layer 4 of a": {row("a", rank, 4, 1.8, true), row("b", rank, 5, 1.8, true)},
		"Expert 2 gets 9.00 × the mean load in layer 1":    {row("a", expert, 1, 9, true), row("a", rank, 2, router.Undefined(), false)},
		"Rank 2 gets 1.30 × the mean load in layer 1":      {row("a", rank, 1, 1.3, true), row("a", rank, 2, 1.6, false)},
		"even as chance allows":                            {row("a", rank, 1, 1.101, false)},
		"is even":                                          {row("a", rank, 1, 1.1, false)},
	} {
		c := &counts.Result{Threshold: 0.1, Imbalance: rows}
		for _, r := range rows {
			if n := len(c.Summary); n > 0 && c.Summary[n-1].Source == r.Source && c.Summary[n-1].Level == r.Level {
				continue
			}
			c.Records = append(c.Records, counts.ResultRecord{Of: counts.Of{Source: r.Source}})
			c.Summary = append(c.Summary, counts.Summary{Of: counts.Of{Source: r.Source},
				Summary: imbalance.Summarize(rows, r.Level, imbalance.Load)})
			c.Summary[len(c.Summary)-1].WorstMaxOverMean = r.MaxOverMean
		}
		verdict := map[bool]Verdict{true: "uneven", false: "even"}[strings.Contains(line, "gets")]
		check(t, line, OfCounts(c, "x"), verdict, line, "", "")
	}
}
