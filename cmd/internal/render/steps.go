package render

import (
	"fmt"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
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
	t := output.Table{
		Name: "steps",
		Title: fmt.Sprintf("Steps of equal batch shape: a gain of %+.1f %% by %s time; they hold %.0f %% of the normal arm's and %.0f %% of the perfect arm's step time",
			100*float64(m.Gain), m.Clock, 100*float64(m.NormalShare), 100*float64(m.PerfectShare)),
		Columns: []output.Column{
			{Name: "rank", Kind: output.Count}, {Name: "requests", Kind: output.Count},
			{Name: "context tokens", Key: "context_tokens", Kind: output.Count}, {Name: "generated tokens", Key: "generated_tokens", Kind: output.Count},
			{Name: "normal steps", Key: "normal_steps", Kind: output.Count}, {Name: "perfect steps", Key: "perfect_steps", Kind: output.Count},
			{Name: "normal mean (ms)", Key: "normal_mean_ms", Kind: output.Real}, {Name: "perfect mean (ms)", Key: "perfect_mean_ms", Kind: output.Real},
			{Name: "gain", Kind: output.Percent},
		},
	}
	for _, s := range m.Strata {
		t.Rows = append(t.Rows, []any{s.Rank, s.Requests, s.ContextTokens, s.GeneratedTokens,
			s.NormalSteps, s.PerfectSteps, s.NormalMeanMS, s.PerfectMeanMS, s.NormalMeanMS/s.PerfectMeanMS - 1})
	}
	return t
}
