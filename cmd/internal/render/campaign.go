package render

import (
	"fmt"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router/quantity"
)

// CampaignTables are the names of the tables of a result, some of which may be
// missing from it.
var CampaignTables = []string{"pairs", "gain", "secondary", "proof", "checks", "profiled"}

// Campaign renders a judged campaign: the verdict first, then every pair, then
// what it rests on.
func Campaign(r source.Campaign) output.Document {
	quantity := r.Metric.Name
	if r.Metric.Unit != "" {
		quantity += " in " + r.Metric.Unit
	}
	pairs := output.Table{Name: "pairs", Title: fmt.Sprintf("Pairs, %s (AB: normal first)", quantity), Columns: []output.Column{
		{Name: "pair", Kind: output.Count}, {Name: "order"}, {Name: "normal", Kind: output.Real}, {Name: string(r.Called(gain.Perfect)), Key: "perfect", Kind: output.Real},
		{Name: "gain", Key: "gain", Kind: output.Percent}, {Name: "status"}, {Name: "note"}}}
	for _, p := range r.Pairs {
		pairs.Rows = append(pairs.Rows, []any{p.Pair, p.Order, p.Normal, p.Perfect, p.Gain, p.Status, p.Note})
	}
	interval := output.Table{Name: "gain", Title: fmt.Sprintf("Gain of %s over normal", r.Called(gain.Perfect)), Columns: []output.Column{
		{Name: "method"}, {Name: "estimate", Kind: output.Percent}, {Name: "low", Kind: output.Percent}, {Name: "high", Kind: output.Percent},
		{Name: "confidence", Kind: output.Percent}, {Name: "pairs", Kind: output.Count}}}
	g := r.Gain
	interval.Rows = [][]any{
		{"Hodges–Lehmann, signed rank", g.Estimate, g.Low, g.High, g.Confidence, g.N},
		{"geometric mean, Student's t", g.TEstimate, g.TLow, g.THigh, g.TConfidence, g.N},
	}
	proof := output.Table{Name: "proof", Title: "Evidence of the routing", Columns: []output.Column{
		{Name: "arm"}, {Name: "rank"}, {Name: "grade"}, {Name: "evidence"}}}
	for _, p := range r.Proof {
		rank := "all"
		if p.Rank != gain.AllRanks {
			rank = fmt.Sprint(p.Rank)
		}
		proof.Rows = append(proof.Rows, []any{string(r.Called(p.Arm)), rank, string(p.Grade), p.Evidence})
	}
	checks := output.Table{Name: "checks", Title: "Checks", Columns: []output.Column{{Name: "check"}, {Name: "status"}, {Name: "text"}}}
	for _, c := range r.Checks {
		checks.Rows = append(checks.Rows, []any{c.Name, string(c.Status), c.Text})
	}
	tables := []output.Table{pairs, interval} // their names are CampaignTables
	if len(r.Secondary) > 0 {
		tables = append(tables, secondaryTable(r.Secondary))
	}
	tables = append(tables, proof, checks)
	if len(r.Profiled) > 0 {
		tables = append(tables, profiledTable(r.Profiled))
	}
	return output.Document{Headline: benchHeadline(r), Tables: tables, Notes: benchNotes(r), Value: r}
}

func secondaryTable(rows []gain.SecondaryGain) output.Table {
	return output.Table{Name: "secondary", Title: "Other metrics (positive gain: better; p adjusted by Holm)", Columns: []output.Column{
		{Name: "metric"}, {Name: "unit"}, {Name: "gain", Kind: output.Percent}, {Name: "low", Kind: output.Percent}, {Name: "high", Kind: output.Percent},
		{Name: "pairs", Kind: output.Count}, {Name: "p", Key: "p_holm", Kind: output.Real}}, Rows: output.Rows(rows, func(s gain.SecondaryGain) []any {
		return []any{s.Metric.Name, s.Metric.Unit, s.Gain.Estimate, s.Gain.Low, s.Gain.High, s.Gain.N, s.PHolm}
	})}
}

func benchHeadline(r source.Campaign) string {
	verdict := string(r.Verdict)
	if r.Verdict != gain.Invalid && r.Balance == gain.Claimed {
		verdict += ", balance claimed"
	}
	return fmt.Sprintf("%s: %s", verdict, strings.Join(r.Reasons, "; "))
}

func benchNotes(r source.Campaign) []string {
	notes := []string{"campaign folder: " + r.Campaign.Folder}
	if r.Metric.Definition != "" {
		notes = append(notes, r.Metric.Name+" is "+strings.TrimPrefix(r.Metric.Definition, r.Metric.Name+"/"))
	}
	if r.Campaign.Left > 0 {
		notes = append(notes, fmt.Sprintf("%s not run yet; resume with: %s", quantity.Count(r.Campaign.Left, "launch"), ResumeCommand(r.Campaign.Folder)))
	}
	if r.Campaign.DecidedAfter.Defined() {
		notes = append(notes, fmt.Sprintf("stopped by the sequential rule after %s; the confidence shown is that of one look", quantity.Count(int64(r.Campaign.DecidedAfter), "pair")))
	}
	return append(notes, profiledNotes(r.Profiled)...)
}

func profiledTable(arms []source.ProfiledArm) output.Table {
	t := output.Table{Name: "profiled", Title: "Profiled pair (not timed)", Columns: []output.Column{
		{Name: "arm"}, {Name: "ranks", Kind: output.Count}, {Name: "GPU time", Key: "gpu_ns", Kind: output.Duration},
		{Name: "worst layer", Key: "layer", Kind: output.Count}, {Name: "expert time over ranks, max/mean", Key: "rank_time_max_over_mean", Kind: output.Ratio},
		{Name: "evidence"}}}
	for _, p := range arms {
		shows := p.Evidence
		if p.Error != "" {
			shows = "unreadable: " + p.Error
		}
		t.Rows = append(t.Rows, []any{p.Arm, p.Ranks, p.GPUNS, p.Layer, p.MaxOverMean, shows})
	}
	return t
}

// profiledNotes say how to see more of the pair, and warn where its traces show
// another arm than was launched.
func profiledNotes(arms []source.ProfiledArm) []string {
	var notes []string
	for _, p := range arms {
		if p.SeenArm != "" && p.SeenArm != p.Arm {
			notes = append(notes, fmt.Sprintf("the traces of the profiled %s launch show the arm %q: %s", p.Arm, p.SeenArm, p.Evidence))
		}
	}
	if len(arms) == len(bench.Arms) && arms[0].Comparable() && arms[1].Comparable() {
		notes = append(notes, "compare the profiled arms: moebalance compare "+launch.Quote([]string{arms[0].Argument(), arms[1].Argument()}))
	}
	return notes
}

// ResumeCommand is the command that resumes a campaign.
func ResumeCommand(folder string) string {
	return "moebalance bench --resume " + launch.Quote([]string{folder})
}
