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
		tables = append(tables, table.Of("proof", "Evidence of the routing", r.Proof, "arm, rank:label, grade, evidence",
			table.Computed("arm", func(p gain.Proof) any { return r.Called(p.Arm) }),
			table.Computed("rank", func(p gain.Proof) any {
				if p.Rank == gain.AllRanks {
					return "all"
				}
				return fmt.Sprint(p.Rank)
			})))
	}
	tables = append(tables, table.Of("checks", "Checks", r.Checks, "check, status, text",
		table.Computed("check", func(c gain.Check) any { return c.Name })).Alarm("status", "warn", "fail"))
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
	name, title, columns := "pairs", fmt.Sprintf("Pairs, %s (AB: %s first)", quantity, normal), "pair"
	if held := r.Design == gain.WithinLaunch; held {
		name, title = "launches", fmt.Sprintf("Launches, %s (geometric means of their segments)", quantity)
		columns = "pair=launch"
	}
	if len(r.Points) > 0 {
		columns += ", point:real=" + r.Points[0].Name
	}
	if r.Share != nil { // of several arms, told apart by the one beside normal
		columns += ", arm"
	}
	if name == "pairs" { // else each block has an order
		columns += ", order"
	}
	units := table.Of(name, title, r.Pairs, fmt.Sprintf("%s, normal:real=%s, perfect:real=%s, gain:percent, status, note",
		columns, normal, otherArm(r, perfect)),
		table.Computed("arm", func(p gain.Pair) any { return cmp.Or(p.Arm, gain.Perfect) }))
	if name == "pairs" {
		return []table.Table{units}
	}
	return []table.Table{units, blockTable(r, normal, perfect)}
}

// otherArm names the column of the arm beside normal.
func otherArm(r gain.Result, perfect string) string {
	if r.Share != nil {
		return "other arm"
	}
	return perfect
}

// blockTable has a row for each block of a launch.
func blockTable(r gain.Result, normal, perfect string) table.Table {
	t := table.New("blocks", fmt.Sprintf("Blocks (A: %s, B: the other arm)", normal), fmt.Sprintf("launch:count, "+
		"point:real, arm, block:count, order, normal:real=%s, perfect:real=%s, gain:percent, status, note", normal, perfect))
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
	return table.Of("gain", fmt.Sprintf("Gain of %s over %s%s", perfect, normal, answer.AtPoint(r)), []gain.Gain{r.Gain},
		"method, estimate:percent, low:percent, high:percent, confidence:percent, "+unitsOf(r, "n"))
}

// unitsOf is the column of how many pairs a gain is of, which are launches where each holds all arms.
func unitsOf(r gain.Result, path string) string {
	if r.Design == gain.WithinLaunch {
		return "pairs<" + path + ":count=launches"
	}
	return "pairs<" + path + ":count"
}

// gained are the columns of a gain below an item.
const gained = "gain<gain.estimate:percent, low<gain.low:percent, high<gain.high:percent, "

// curveTables are the gain at each point and of each arm, where there are several.
func curveTables(r gain.Result) (tables []table.Table) {
	if len(r.Points) > 0 {
		columns := "value:real=" + r.Points[0].Name + ", " + gained + unitsOf(r, "gain.n") + ", verdict"
		if r.Share != nil {
			columns += ", share_of_ceiling<share_of_ceiling.estimate:percent"
		}
		tables = append(tables, table.Of("points", fmt.Sprintf("Gain by %s; the intervals hold together at %s (Bonferroni)",
			r.Points[0].Name, quantity.Confidence(r.SimultaneousConfidence)), r.Points, columns).
			Alarm("verdict", string(gain.Significant)))
	}
	if r.Share != nil && len(r.Points) == 0 {
		arms := slices.Clone(r.Arms[1:])
		for i, a := range arms {
			if a.Share == nil {
				arms[i].Share = &gain.Share{Estimate: 1, Low: router.Undefined(), High: router.Undefined()}
			}
		}
		tables = append(tables, table.Of("arms",
			"Gain of each arm over normal, and share of the gain of balanced routing that it recovers", arms,
			"arm<name, "+gained+"verdict, share_of_ceiling<share_of_ceiling.estimate:percent=share, "+
				"share_low<share_of_ceiling.low:percent, share_high<share_of_ceiling.high:percent").
			Alarm("verdict", string(gain.Significant)))
	}
	return tables
}

// doseTable is the time under each arm by its load imbalance.
func doseTable(r gain.Result) table.Table {
	point := "point"
	if len(r.Points) > 0 {
		point = r.Points[0].Name
	}
	t := table.New("dose", "Time by load imbalance, over balanced routing's; the line is drawn through arms marked so",
		"point:real="+point+", arm, rank_max_over_mean=rank load (max/mean), load, time:ratio, low:ratio, high:ratio, line")
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
	}
	return t
}

func secondaryTable(r gain.Result) table.Table {
	return table.Of("secondary", "Other metrics (positive gain: better; interval and p adjusted for all)", r.Secondary,
		"metric<metric.name, unit<metric.unit, "+gained+unitsOf(r, "gain.n")+", p<gain.p:real")
}

func benchNotes(r source.Campaign) []string {
	var notes []string
	if r.Campaign.Folder != "" {
		notes = append(notes, "campaign folder: "+r.Campaign.Folder)
	}
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
	title := fmt.Sprintf("Steps of equal batch shape: gain %s by %s time; share of the step time: %s %s, %s %s",
		quantity.Change(m.Gain), m.Clock, normal, quantity.Percent(m.NormalShare), perfect,
		quantity.Percent(m.PerfectShare))
	return table.Of("steps", title, m.Strata, named("kind, rank, requests, context_tokens, generated_tokens, "+
		"normal_steps={A} steps, perfect_steps={B} steps, normal_mean_ms={A} mean (ms), perfect_mean_ms={B} mean (ms), "+
		"gain:percent", [2]gain.Arm{gain.Arm(normal), gain.Arm(perfect)}),
		table.Computed("gain", func(s metrics.Stratum) any { return s.NormalMeanMS/s.PerfectMeanMS - 1 }))
}
