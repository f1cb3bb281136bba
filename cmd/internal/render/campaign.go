package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
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
	rank := computed(label("rank"), func(p gain.Proof) any {
		if p.Rank == gain.AllRanks {
			return "all"
		}
		return fmt.Sprint(p.Rank)
	})
	arm := computed(label("arm"), func(p gain.Proof) any { return r.Called(p.Arm) })
	g, perfect := r.Gain, string(r.Called(gain.Perfect))
	tables := []output.Table{ // their names are CampaignTables
		output.Of("pairs", fmt.Sprintf("Pairs, %s (AB: normal first)", quantity), r.Pairs,
			count("pair"), label("order"), real("normal"), real(perfect, "perfect"), percent("gain"), label("status"), label("note")),
		{Name: "gain", Title: fmt.Sprintf("Gain of %s over normal", perfect), Columns: []output.Column{
			label("method"), percent("estimate"), percent("low"), percent("high"), percent("confidence"), count("pairs"),
		}, Rows: [][]any{
			{g.Method + " (decides)", g.Estimate, g.Low, g.High, g.Confidence, g.N},
			{"Hodges–Lehmann, signed rank", g.RankEstimate, g.RankLow, g.RankHigh, g.RankConfidence, g.N},
		}},
	}
	if len(r.Secondary) > 0 {
		tables = append(tables, secondaryTable(r.Secondary))
	}
	tables = append(tables, output.Of("proof", "Evidence of the routing", r.Proof, arm, rank, label("grade"), label("evidence")),
		output.Of("checks", "Checks", r.Checks, computed(label("check"), func(c gain.Check) any { return c.Name }), label("status"), label("text")))
	if len(r.Profiled) > 0 {
		tables = append(tables, profiledTable(r.Profiled))
	}
	return output.Document{Headline: benchHeadline(r), Tables: tables, Notes: benchNotes(r), Value: r}
}

func secondaryTable(rows []gain.SecondaryGain) output.Table {
	t := output.Table{Name: "secondary", Title: "Other metrics (positive gain: better; interval and p adjusted for all)", Columns: []output.Column{
		label("metric"), label("unit"), percent("gain"), percent("low"), percent("high"), count("pairs"), real("p")}}
	for _, s := range rows {
		t.Rows = append(t.Rows, []any{s.Metric.Name, s.Metric.Unit, s.Gain.Estimate, s.Gain.Low, s.Gain.High, s.Gain.N, s.Gain.P})
	}
	return t
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
	if len(r.Campaign.Rejudged) > 0 {
		notes = append(notes, "judged by other rules than the campaign was run under: --"+strings.Join(r.Campaign.Rejudged, ", --"))
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
	evidence := computed(label("evidence"), func(p source.ProfiledArm) any {
		if p.Error != "" {
			return "unreadable: " + p.Error
		}
		return p.Evidence
	})
	return output.Of("profiled", "Profiled pair (not timed)", arms, label("arm"), count("ranks"), duration("GPU time", "gpu_ns"),
		count("worst layer", "layer"), ratio("expert time over ranks, max/mean", "rank_time_max_over_mean"), evidence)
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

// Event is the line for an event of a campaign, empty for most of them. metric is the
// one compared; empty means the primary one of the report.
func Event(e bench.Event, metric string) string {
	head := fmt.Sprintf("[%d of %d] launch %d, %s", e.Done, e.Done+e.Left, e.Launch.Position, describeLaunch(e.Launch))
	switch e.Stage {
	case bench.Starting:
		if n := len(e.Launch.Attempts); n > 1 {
			last := e.Launch.Attempts[n-2]
			return fmt.Sprintf("%s: attempt %d was %s (%s); trying again", head, last.Number, last.State, last.Error)
		}
	case bench.Ended:
		if e.Attempt.State == bench.Finished { // other ends are reported with the next attempt or as the error
			return head + ": " + describeAttempt(e.Attempt, metric)
		}
	case bench.Cooling:
		return fmt.Sprintf("%s: begins in %s", head, e.Text)
	case bench.Looked, bench.Cleaning:
		return e.Text
	}
	return ""
}

func describeLaunch(l bench.Launch) string {
	switch l.Kind {
	case bench.Timed:
		return fmt.Sprintf("pair %d, %s", l.Pair, l.Arm)
	case bench.Floor:
		return fmt.Sprintf("A/A pair %d, %s", l.Pair, l.Arm)
	}
	return fmt.Sprintf("%s, %s", l.Kind, l.Arm)
}

func describeAttempt(a bench.Attempt, metric string) string {
	took := time.Duration(a.DurationNS).Round(time.Millisecond)
	if a.Result != nil {
		if metric == "" {
			metric = a.Result.Primary
		}
		if m, ok := a.Result.Metric(metric); ok {
			return strings.TrimSpace(fmt.Sprintf("%.6g %s", m.Value, m.Unit)) + " in " + took.String()
		}
	}
	return fmt.Sprintf("done in %s", took)
}

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
