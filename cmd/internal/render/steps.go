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
	return output.Table{
		Name: "steps",
		Title: fmt.Sprintf("Steps of equal batch shape: gain %s by %s time; share of the step time: normal %s, perfect %s",
			quantity.Change(m.Gain), m.Clock, quantity.Percent(m.NormalShare), quantity.Percent(m.PerfectShare)),
		Columns: []output.Column{
			{Name: "rank", Kind: output.Count}, {Name: "requests", Kind: output.Count},
			{Name: "context tokens", Key: "context_tokens", Kind: output.Count}, {Name: "generated tokens", Key: "generated_tokens", Kind: output.Count},
			{Name: "normal steps", Key: "normal_steps", Kind: output.Count}, {Name: "perfect steps", Key: "perfect_steps", Kind: output.Count},
			{Name: "normal mean (ms)", Key: "normal_mean_ms", Kind: output.Real}, {Name: "perfect mean (ms)", Key: "perfect_mean_ms", Kind: output.Real},
			{Name: "gain", Kind: output.Percent},
		},
		Rows: output.Rows(m.Strata, func(s metrics.Stratum) []any {
			return []any{s.Rank, s.Requests, s.ContextTokens, s.GeneratedTokens,
				s.NormalSteps, s.PerfectSteps, s.NormalMeanMS, s.PerfectMeanMS, s.NormalMeanMS/s.PerfectMeanMS - 1}
		}),
	}
}
