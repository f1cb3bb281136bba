package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/table"
)

// Campaign renders a judged campaign: the verdict first, then what it rests on.
func Campaign(r source.Campaign) output.Document {
	var notes []string
	if r.Metric.Definition != "" {
		notes = append(notes, r.Metric.Name+" is "+strings.TrimPrefix(r.Metric.Definition, r.Metric.Name+"/"))
	}
	r.Result = answer.Worded(r.Result)
	d := document(answer.OfCampaign(r.Result, r.Run), append(notes, r.Notes...), r,
		slices.DeleteFunc(campaignTables(r.Result), func(t table.Table) bool {
			return t.Len() == 0 || t.Name == "comparisons" && t.Len() == 1 // the gain alone
		})...)
	d.Why = cmp.Or(strings.Join(answer.Failures(r.Result), "; "), d.Headline)
	if r.Run.Reports != "" {
		d.Value = answered[gain.Result]{r.Result, d.Answer}
	}
	switch {
	case r.Verdict.Refused():
	case r.Curved():
		d.Lead = d.Named("dose")
	case len(r.Comparisons) > 1 || r.Verdict.Open(): // these, or the units
		d.Lead = d.Named("").Without("order", "status")
	}
	return d
}

// gained are the columns of a gain below an item.
const gained = "gain<gain.estimate:percent, low<gain.low:percent, high<gain.high:percent, n<gain.n:count"

// campaignTables are the tables of a result.
func campaignTables(r gain.Result) []table.Table {
	type dosed struct {
		Point float64 `json:"point,omitempty"`
		gain.DoseArm
	}
	point, perfect, doses := "point", string(r.Called(gain.Perfect)), []dosed{}
	for _, c := range r.Main() {
		if point = cmp.Or(c.Name, point); c.Dose != nil {
			for _, a := range c.Dose.Arms {
				doses = append(doses, dosed{c.Value, a})
			}
		}
	}
	var last gain.Arm // the perfect one, where there are further arms
	if len(r.Comparisons) > len(r.Main()) {
		perfect, last = "other arm", r.Called(gain.Perfect)
	}
	rows := r.Units()
	for i, u := range rows {
		rows[i].Arm = cmp.Or(u.Arm, last)
	}
	name, unit := "pairs", "pair"
	if r.Design == gain.WithinLaunch {
		name, unit = "launches", "launch"
	}
	metric := strings.TrimSpace(r.Metric.Name + " " + r.Metric.Unit)
	normal := r.Called(gain.Normal)
	sides := fmt.Sprintf(", point:real=%[1]s, arm, order=order (A: %[2]s), normal:real=%[2]s, perfect:real=%[3]s, "+
		"gain:percent, status, note", point, normal, perfect)
	return []table.Table{
		table.Of("comparisons", fmt.Sprintf("Gain over %s; the intervals hold together at %s", normal,
			quantity.Confidence(gain.DefaultConfidence)), r.Comparisons, "value:real="+point+", arm, "+gained+", verdict, "+
			"share_of_ceiling<share_of_ceiling.estimate:percent=share, share_low<share_of_ceiling.low:percent, "+
			"share_high<share_of_ceiling.high:percent"),
		table.Of(name, metric+" by "+unit, rows, "pair="+unit+sides),
		table.Of("dose", "Time by load imbalance, over balanced routing's", doses, "point:real="+point+
			", arm, rank_max_over_mean=rank load (max/mean), measured, time:ratio, low:ratio, high:ratio, fitted=on the line"),
		table.Of("secondary", "Other metrics (positive gain: better; the intervals hold together)", r.Secondary,
			"metric<metric.name, unit<metric.unit, "+gained),
		table.Of("proof", "Evidence of the routing", r.Proof, "arm, rank:label, grade, evidence"),
		table.Of("checks", "Checks", r.Checks, "check<name, status, text"),
	}
}

// ResumeCommand is the command that resumes a campaign.
func ResumeCommand(folder string) string {
	return "moebalance bench --resume " + launch.Quote([]string{folder})
}
