package render

import (
	"fmt"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router/quantity"
)

// reportComparison is the JSON of a comparison of benchmark reports.
type reportComparison struct {
	gain.Result
	MatchedSteps *metrics.Match `json:"matched_steps,omitempty"`
}

// Reports renders the verdict on two sets of benchmark reports, with their steps of
// equal batch shape.
func Reports(r gain.Result, set source.ReportSet) output.Document {
	d := Campaign(source.Campaign{Result: r})
	if set.Matched != nil {
		d.Tables = append(d.Tables, matchedSteps(set.Matched))
	}
	d.Notes, d.Value = set.Notes, reportComparison{r, set.Matched}
	return d
}

func matchedSteps(m *metrics.Match) output.Table {
	gained := computed(percent("gain"), func(s metrics.Stratum) any { return s.NormalMeanMS/s.PerfectMeanMS - 1 })
	title := fmt.Sprintf("Steps of equal batch shape: gain %s by %s time; share of the step time: normal %s, perfect %s",
		quantity.Change(m.Gain), m.Clock, quantity.Percent(m.NormalShare), quantity.Percent(m.PerfectShare))
	return output.Of("steps", title, m.Strata,
		count("rank"), count("requests"), count("context tokens"), count("generated tokens"), count("normal steps"), count("perfect steps"),
		real("normal mean (ms)", "normal_mean_ms"), real("perfect mean (ms)", "perfect_mean_ms"), gained)
}
