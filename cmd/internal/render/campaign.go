package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/table"
)

// CampaignTables are the names of the tables of a result, some of which may be
// missing from it.
var CampaignTables = []string{"points", "arms", "pairs", "launches", "blocks", "gain", "dose", "secondary", "proof",
	"checks", "profiled", "steps"}

// Campaign renders a judged campaign: the verdict first, then every pair, then
// what it rests on.
func Campaign(r source.Campaign) output.Document {
	r.Result = answer.Worded(r.Result)
	rank := computed(label("rank"), func(p gain.Proof) any {
		if p.Rank == gain.AllRanks {
			return "all"
		}
		return fmt.Sprint(p.Rank)
	})
	arm := computed(label("arm"), func(p gain.Proof) any { return r.Called(p.Arm) })
	normal, perfect := string(r.Called(gain.Normal)), string(r.Called(gain.Perfect))
	tables := append(curveTables(r.Result), unitTables(r.Result, normal, perfect)...) // their names are CampaignTables
	tables = append(tables, gainTable(r.Result, normal, perfect))
	if t := doseTable(r.Result); len(t.Rows) > 0 {
		tables = append(tables, t)
	}
	if len(r.Secondary) > 0 {
		tables = append(tables, secondaryTable(r.Result))
	}
	if len(r.Proof) > 0 {
		tables = append(tables, table.Of("proof", "Evidence of the routing", r.Proof, arm, rank, label("grade"),
			label("evidence")))
	}
	tables = append(tables, table.Of("checks", "Checks", r.Checks,
		computed(label("check"), func(c gain.Check) any { return c.Name }), alarming(label("status"), "warn", "fail"),
		label("text")))
	if r.Iterations != nil && len(r.Iterations.Matched.Strata) > 0 {
		tables = append(tables, matchedSteps(&r.Iterations.Matched, normal, perfect))
	}
	a := answer.OfCampaign(r.Asked())
	d := document(a, benchNotes(r), struct {
		source.Campaign
		Answer answer.Answer `json:"answer"`
	}{r, a}, tables...)
	switch {
	case r.Verdict.Refused():
	case r.Dose != nil:
		d.Lead = d.Named("dose")
	case len(r.Points) > 0:
		d.Lead = d.Named("points")
	case r.Share != nil:
		d.Lead = d.Named("arms")
	case r.Verdict == gain.Inconclusive:
		d.Lead = d.Named("pairs").Without("order", "status")
		if r.Design == gain.WithinLaunch {
			d.Lead = d.Named("launches").Without("status")
		}
	}
	return d
}

// unitTables are the pairs, or the launches that hold all arms and their blocks.
func unitTables(r gain.Result, normal, perfect string) []table.Table {
	quantity := r.Metric.Name
	if r.Metric.Unit != "" {
		quantity += " in " + r.Metric.Unit
	}
	held := r.Design == gain.WithinLaunch
	unit := count("pair")
	if held {
		unit = count("launch", "pair")
	}
	columns := []table.Column{unit, label("order"), real(normal, "normal"), real(perfect, "perfect"),
		percent("gain"), label("status"), label("note")}
	if held { // the orders are those of the blocks
		columns = slices.Delete(columns, 1, 2)
	}
	if r.Share != nil { // pairs of several arms, told apart by the one beside normal
		columns[len(columns)-4] = real("other arm", "perfect")
		columns = slices.Insert(columns, len(columns)-5,
			computed(label("arm"), func(p gain.Pair) any { return cmp.Or(p.Arm, gain.Perfect) }))
	}
	if len(r.Points) > 0 {
		columns = slices.Insert(columns, 1, real(r.Points[0].Name, "point"))
	}
	if !held {
		return []table.Table{table.Of("pairs", fmt.Sprintf("Pairs, %s (AB: %s first)", quantity, normal), r.Pairs,
			columns...)}
	}
	return []table.Table{
		table.Of("launches", fmt.Sprintf("Launches, %s (geometric means of their segments)", quantity), r.Pairs,
			columns...),
		blockTable(r, normal, perfect),
	}
}

// blockTable has a row for each block of a launch.
func blockTable(r gain.Result, normal, perfect string) table.Table {
	t := table.Table{Name: "blocks", Title: fmt.Sprintf("Blocks (A: %s, B: the other arm)", normal),
		Columns: []table.Column{count("launch"), real("point"), label("arm"), count("block"), label("order"),
			real(normal, "normal"), real(perfect, "perfect"), percent("gain"), label("status"), label("note")}}
	for _, l := range r.Launches {
		for _, b := range l.Blocks {
			t.Rows = append(t.Rows, []any{l.Launch, l.Point, cmp.Or(l.Arm, gain.Arm(perfect)), b.Block, b.Order, b.Normal,
				b.Perfect, b.Gain, b.Status, b.Note})
		}
	}
	if r.Share == nil {
		t = *t.Without("arm")
	}
	if len(r.Points) == 0 {
		t = *t.Without("point")
	}
	return t
}

func gainTable(r gain.Result, normal, perfect string) table.Table {
	g := r.Gain
	t := table.Table{Name: "gain", Title: fmt.Sprintf("Gain of %s over %s%s", perfect, normal, answer.AtPoint(r)),
		Columns: []table.Column{
			label("method"), percent("estimate"), percent("low"), percent("high"), percent("confidence"),
			counted(r),
		}, Rows: [][]any{
			{g.Method + " (decides)", g.Estimate, g.Low, g.High, g.Confidence, g.N},
			{"difference of the arms' medians", g.MedianEstimate, g.MedianLow, g.MedianHigh, g.Confidence, g.N},
		}}
	if r.Design == gain.WithinLaunch || g.MedianLow == 0 && g.MedianHigh == 0 { // or of a result older than medians
		t.Rows = t.Rows[:1]
	}
	return t
}

// counted is the column of how many pairs a gain is of, which are launches where each holds all arms.
func counted(r gain.Result) table.Column {
	if r.Design == gain.WithinLaunch {
		return count("launches", "pairs")
	}
	return count("pairs")
}

// curveTables are the gain at each point and of each arm, where there are several.
func curveTables(r gain.Result) (tables []table.Table) {
	if len(r.Points) > 0 {
		name := r.Points[0].Name
		gained := func(key string, of func(gain.Gain) router.Number) table.Column {
			return computed(percent(key), func(p gain.PointGain) any { return of(p.Gain) })
		}
		columns := []table.Column{real(name, "value"),
			gained("gain", func(g gain.Gain) router.Number { return g.Estimate }),
			gained("low", func(g gain.Gain) router.Number { return g.Low }),
			gained("high", func(g gain.Gain) router.Number { return g.High }),
			computed(counted(r), func(p gain.PointGain) any { return p.Gain.N }),
			alarming(label("verdict"), string(gain.Significant))}
		if slices.ContainsFunc(r.Points, func(p gain.PointGain) bool { return p.TokensPerExpert.Defined() }) {
			columns = append(columns, real("tokens per active expert"))
		}
		if r.Share != nil {
			columns = append(columns, computed(percent("share of ceiling"),
				func(p gain.PointGain) any {
					if p.Share == nil {
						return router.Undefined()
					}
					return p.Share.Estimate
				}))
		}
		tables = append(tables,
			table.Of("points", fmt.Sprintf("Gain by %s; the intervals hold together at %s (Bonferroni)", name,
				quantity.Confidence(r.SimultaneousConfidence)), r.Points, columns...))
	}
	if r.Share != nil && len(r.Points) == 0 {
		t := table.Table{Name: "arms",
			Title: "Gain of each arm over normal, and share of the gain of balanced routing that it recovers",
			Columns: []table.Column{label("arm"), percent("gain"), percent("low"), percent("high"),
				alarming(label("verdict"), string(gain.Significant)), percent("share", "share_of_ceiling"),
				percent("share low"), percent("share high")}}
		for _, a := range r.Arms[1:] {
			share := gain.Share{Estimate: 1, Low: router.Undefined(), High: router.Undefined()}
			if a.Share != nil {
				share = *a.Share
			}
			t.Rows = append(t.Rows, []any{a.Name, a.Gain.Estimate, a.Gain.Low, a.Gain.High, a.Verdict, share.Estimate,
				share.Low, share.High})
		}
		tables = append(tables, t)
	}
	return tables
}

// doseTable is the time under each arm by its load imbalance.
func doseTable(r gain.Result) table.Table {
	t := table.Table{Name: "dose", Title: "Time by load imbalance, over balanced routing's; the line is drawn through " +
		"arms marked so",
		Columns: []table.Column{real("point"), label("arm"), ratio("rank load, max/mean", "rank_max_over_mean"),
			label("load"), ratio("time"), ratio("low"), ratio("high"), label("line")}}
	add := func(point router.Number, d *gain.Dose) {
		if d == nil {
			return
		}
		for _, a := range d.Arms {
			t.Rows = append(t.Rows, []any{point, r.Called(a.Arm), a.MaxOverMean,
				map[bool]string{true: "measured", false: "as told"}[a.Measured], a.Time, a.Low, a.High,
				map[bool]string{true: "yes"}[a.Fitted]})
		}
	}
	for _, p := range r.Points {
		add(router.Number(p.Value), p.Dose)
	}
	if len(r.Points) == 0 {
		add(router.Undefined(), r.Dose)
		t = *t.Without("point")
	} else {
		t.Columns[0] = real(r.Points[0].Name, "point")
	}
	return t
}

func secondaryTable(r gain.Result) table.Table {
	t := table.Table{Name: "secondary", Title: "Other metrics (positive gain: better; interval and p adjusted for all)",
		Columns: []table.Column{
			label("metric"), label("unit"), percent("gain"), percent("low"), percent("high"), counted(r),
			real("p")}}
	for _, s := range r.Secondary {
		t.Rows = append(t.Rows, []any{s.Metric.Name, s.Metric.Unit, s.Gain.Estimate, s.Gain.Low, s.Gain.High, s.Gain.N,
			s.Gain.P})
	}
	return t
}

func benchNotes(r source.Campaign) []string {
	notes := []string{"campaign folder: " + r.Campaign.Folder}
	if r.Metric.Definition != "" {
		notes = append(notes, r.Metric.Name+" is "+strings.TrimPrefix(r.Metric.Definition, r.Metric.Name+"/"))
	}
	return notes
}

// ResumeCommand is the command that resumes a campaign.
func ResumeCommand(folder string) string {
	return "moebalance bench --resume " + launch.Quote([]string{folder})
}

// reportComparison is the JSON of a comparison of benchmark reports.
type reportComparison struct {
	gain.Result
	Answer       answer.Answer  `json:"answer"`
	MatchedSteps *metrics.Match `json:"matched_steps,omitempty"`
}

// Reports renders the verdict on two sets of benchmark reports, with their steps of
// equal batch shape.
func Reports(r gain.Result, set source.ReportSet) output.Document {
	a := answer.OfCampaign(r, gain.Run{})
	d := Campaign(source.Campaign{Result: r})
	if set.Matched != nil {
		d.Tables = append(d.Tables, matchedSteps(set.Matched, string(r.Called(gain.Normal)),
			string(r.Called(gain.Perfect))))
	}
	d.Notes, d.Value = append(d.Notes, set.Notes...), reportComparison{r, a, set.Matched}
	return d
}

func matchedSteps(m *metrics.Match, normal, perfect string) table.Table {
	gained := computed(percent("gain"), func(s metrics.Stratum) any { return s.NormalMeanMS/s.PerfectMeanMS - 1 })
	title := fmt.Sprintf("Steps of equal batch shape: gain %s by %s time; share of the step time: %s %s, %s %s",
		quantity.Change(m.Gain), m.Clock, normal, quantity.Percent(m.NormalShare), perfect,
		quantity.Percent(m.PerfectShare))
	return table.Of("steps", title, m.Strata,
		label("kind"), count("rank"), count("requests"), count("context tokens"), count("generated tokens"),
		count(normal+" steps", "normal_steps"), count(perfect+" steps", "perfect_steps"),
		real(normal+" mean (ms)", "normal_mean_ms"), real(perfect+" mean (ms)", "perfect_mean_ms"), gained)
}
