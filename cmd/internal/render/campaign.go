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
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/table"
)

// CampaignTables are the names of the tables of a result, some of which may be
// missing from it.
var CampaignTables = []string{"points", "arms", "pairs", "launches", "blocks", "dose", "secondary", "proof", "checks"}

// Campaign renders a judged campaign: the verdict first, then what it rests on.
func Campaign(r source.Campaign) output.Document {
	var notes []string
	if r.Run.Folder != "" {
		notes = append(notes, "campaign folder: "+r.Run.Folder)
	}
	if r.Metric.Definition != "" {
		notes = append(notes, r.Metric.Name+" is "+strings.TrimPrefix(r.Metric.Definition, r.Metric.Name+"/"))
	}
	r.Result = answer.Worded(r.Result)
	d := document(answer.OfCampaign(r.Result, r.Run), notes, r, slices.DeleteFunc(campaignTables(r.Result),
		func(t table.Table) bool { return len(t.Rows) == 0 })...)
	switch {
	case r.Verdict.Refused():
	case r.Dose != nil:
		d.Lead = d.Named("dose")
	case len(r.Points) > 0:
		d.Lead = d.Named("points")
	case r.Share != nil:
		d.Lead = d.Named("arms")
	case r.Verdict == gain.Inconclusive:
		d.Lead = d.Named(units(r.Result)).Without("order", "status")
	}
	return d
}

// units are what is repeated: pairs, or launches that hold all arms.
func units(r gain.Result) string {
	if r.Design == gain.WithinLaunch {
		return "launches"
	}
	return "pairs"
}

// gained are the columns of a gain below an item.
const gained = "gain<gain.estimate:percent, low<gain.low:percent, high<gain.high:percent, n<gain.n:count"

// campaignTables are the tables of a result, named as in CampaignTables.
func campaignTables(r gain.Result) []table.Table {
	type values = gain.Block // or its name would hide its field
	type block struct {
		Launch int           `json:"launch"`
		Point  router.Number `json:"point,omitempty"`
		Arm    gain.Arm      `json:"arm,omitempty"`
		values
	}
	type dosed struct {
		Point float64 `json:"point,omitempty"`
		gain.DoseArm
	}
	point, perfect, doses := "point", string(r.Called(gain.Perfect)), []dosed{}
	for _, p := range append([]gain.PointGain{{Dose: r.Dose}}, r.Points...) {
		if point = cmp.Or(p.Name, point); p.Dose != nil && (p.Name != "" || len(r.Points) == 0) {
			for _, a := range p.Dose.Arms {
				doses = append(doses, dosed{p.Value, a})
			}
		}
	}
	var further []gain.ArmGain
	var last gain.Arm // the perfect one, where there are further arms
	if r.Share != nil {
		further, perfect, last = r.Arms[1:], "other arm", r.Called(gain.Perfect)
	}
	pairs, blocks := slices.Clone(r.Pairs), []block{}
	for i := range pairs {
		pairs[i].Arm = cmp.Or(pairs[i].Arm, last)
	}
	for _, l := range r.Launches {
		for _, b := range l.Blocks {
			blocks = append(blocks, block{l.Launch, l.Point, cmp.Or(l.Arm, last), b})
		}
	}
	metric := strings.TrimSpace(r.Metric.Name + " " + r.Metric.Unit)
	sides := fmt.Sprintf(", point:real=%s, arm, order, normal:real=%s, perfect:real=%s, gain:percent, status, note", point,
		r.Called(gain.Normal), perfect)
	return []table.Table{
		table.Of("points", fmt.Sprintf("Gain by %s; the intervals hold together at %s (Bonferroni)", point,
			quantity.Confidence(r.SimultaneousConfidence)), r.Points, "value:real="+point+", "+gained+", verdict, "+
			"share_of_ceiling<share_of_ceiling.estimate:percent"),
		table.Of("arms", "Gain of each arm over normal, and share of the gain of balanced routing that it recovers",
			further, "arm<name, "+gained+", verdict, share_of_ceiling<share_of_ceiling.estimate:percent=share, "+
				"share_low<share_of_ceiling.low:percent, share_high<share_of_ceiling.high:percent"),
		table.Of(units(r), fmt.Sprintf("%s by %s; A is %s", metric, strings.TrimSuffix(units(r), "s"),
			r.Called(gain.Normal)), pairs, "pair="+units(r)[:len(units(r))-1]+sides),
		table.Of("blocks", fmt.Sprintf("%s by block; A is %s", metric, r.Called(gain.Normal)), blocks, "launch, block"+sides),
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

// Reports renders the verdict on two sets of benchmark reports.
func Reports(r gain.Result, set source.ReportSet) output.Document {
	d := Campaign(source.Campaign{Result: r})
	d.Notes, d.Value = append(d.Notes, set.Notes...), answer.Worded(r)
	return d
}
