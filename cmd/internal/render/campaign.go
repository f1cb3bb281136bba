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

// CampaignTables are the names of the tables of a result, some of which may be
// missing from it.
var CampaignTables = []string{"points", "arms", "pairs", "launches", "blocks", "dose", "secondary", "proof", "checks", "steps"}

// Campaign renders a judged campaign: the verdict first, then what it rests on.
func Campaign(r source.Campaign) output.Document {
	r.Result = answer.Worded(r.Result)
	a := answer.OfCampaign(r.Result, r.Run)
	d := document(a, benchNotes(r), struct {
		source.Campaign
		Answer answer.Answer `json:"answer"`
	}{r, a}, campaignTables(r.Result)...)
	switch {
	case r.Verdict.Refused():
	case r.Dose != nil:
		d.Lead = d.Named("dose")
	case len(r.Points) > 0:
		d.Lead = d.Named("points")
	case r.Share != nil:
		d.Lead = d.Named("arms")
	case r.Verdict == gain.Inconclusive && r.Design == gain.WithinLaunch:
		d.Lead = d.Named("launches").Without("status")
	case r.Verdict == gain.Inconclusive:
		d.Lead = d.Named("pairs").Without("order", "status")
	}
	return d
}

// gained are the columns of a gain below an item; launches are units that hold all arms, pairs others.
const gained = "gain<gain.estimate:percent, low<gain.low:percent, high<gain.high:percent, n<gain.n:count"

// campaignTables are the tables that have rows, named as in CampaignTables.
func campaignTables(r gain.Result) []table.Table {
	point := "point"
	if len(r.Points) > 0 {
		point = r.Points[0].Name
	}
	return slices.DeleteFunc([]table.Table{
		table.Of("points", fmt.Sprintf("Gain by %s; the intervals hold together at %s (Bonferroni)", point,
			quantity.Confidence(r.SimultaneousConfidence)), r.Points, "value:real="+point+", "+gained+", verdict, "+
			"share_of_ceiling<share_of_ceiling.estimate:percent"),
		armsTable(r), unitsTable(r, point), blocksTable(r, point), doseTable(r, point),
		table.Of("secondary", "Other metrics (positive gain: better; the intervals hold together)", r.Secondary,
			"metric<metric.name, unit<metric.unit, "+gained),
		proofTable(r),
		table.Of("checks", "Checks", r.Checks, "check<name, status, text"),
	}, func(t table.Table) bool { return len(t.Rows) == 0 })
}

// armsTable is the gain of each further arm, and last the balanced one's.
func armsTable(r gain.Result) table.Table {
	var ceiling []gain.ArmGain
	if r.Share != nil {
		for _, a := range r.Arms[1:] {
			a.Share = cmp.Or(a.Share, &gain.Share{Estimate: 1})
			ceiling = append(ceiling, a)
		}
	}
	return table.Of("arms", "Gain of each arm over normal, and share of the gain of balanced routing that it recovers",
		ceiling, "arm<name, "+gained+", verdict, share_of_ceiling<share_of_ceiling.estimate:percent=share, "+
			"share_low<share_of_ceiling.low:percent, share_high<share_of_ceiling.high:percent")
}

// loadOf is the load of a row where there are several, nil else.
func loadOf(r gain.Result, value any) any {
	if len(r.Points) == 0 {
		return nil
	}
	return value
}

// armOf is the arm of a row where there are several beside normal, nil else.
func armOf(r gain.Result, arm gain.Arm) any {
	if r.Share == nil {
		return nil
	}
	return cmp.Or(arm, r.Called(gain.Perfect))
}

// unitColumns are the columns of a pair, launch or block behind its number.
func unitColumns(r gain.Result, point string) string {
	perfect := string(r.Called(gain.Perfect))
	if r.Share != nil {
		perfect = "other arm"
	}
	return fmt.Sprintf(", point:real=%s, arm, order, normal:real=%s, perfect:real=%s, gain:percent, status, note", point,
		r.Called(gain.Normal), perfect)
}

// unitsTable are the pairs, or the launches that hold all arms.
func unitsTable(r gain.Result, point string) table.Table {
	metric := strings.TrimSpace(r.Metric.Name + " " + r.Metric.Unit)
	units, title, unit := "pairs", fmt.Sprintf("Pairs, %s (AB: %s first)", metric, r.Called(gain.Normal)), "pair"
	if r.Design == gain.WithinLaunch {
		units, title, unit = "launches", "Launches, "+metric+" (geometric means of their segments)", "launch"
	}
	return table.Of(units, title, r.Pairs, "pair="+unit+unitColumns(r, point),
		table.Computed("point", func(p gain.Pair) any { return loadOf(r, p.Point) }),
		table.Computed("arm", func(p gain.Pair) any { return armOf(r, p.Arm) }))
}

// blocksTable are the blocks of launches that hold all arms.
func blocksTable(r gain.Result, point string) table.Table {
	type values = gain.Block // or its name would hide its field
	type block struct {
		Launch     int `json:"launch"`
		point, arm any
		values
	}
	var blocks []block
	for _, l := range r.Launches {
		for _, b := range l.Blocks {
			blocks = append(blocks, block{l.Launch, loadOf(r, l.Point), armOf(r, l.Arm), b})
		}
	}
	return table.Of("blocks", fmt.Sprintf("Blocks (A: %s, B: the other arm)", r.Called(gain.Normal)), blocks,
		"launch, block"+unitColumns(r, point),
		table.Computed("point", func(b block) any { return b.point }),
		table.Computed("arm", func(b block) any { return b.arm }))
}

// proofTable is the evidence of each rank.
func proofTable(r gain.Result) table.Table {
	return table.Of("proof", "Evidence of the routing", r.Proof, "arm, rank:label, grade, evidence",
		table.Computed("arm", func(p gain.Proof) any { return r.Called(p.Arm) }),
		table.Computed("rank", func(p gain.Proof) any {
			if p.Rank == gain.AllRanks {
				return "all"
			}
			return fmt.Sprint(p.Rank)
		}))
}

// doseTable is the time under each arm by its load imbalance.
func doseTable(r gain.Result, point string) table.Table {
	type dosed struct {
		at any
		gain.DoseArm
	}
	var arms []dosed
	add := func(at any, d *gain.Dose) {
		if d != nil {
			for _, a := range d.Arms {
				arms = append(arms, dosed{at, a})
			}
		}
	}
	for _, p := range r.Points {
		add(p.Value, p.Dose)
	}
	if len(r.Points) == 0 {
		add(nil, r.Dose)
	}
	return table.Of("dose", "Time by load imbalance, over balanced routing's; the line is drawn through arms marked so",
		arms, "point:real="+point+", arm, rank_max_over_mean=rank load (max/mean), load, time:ratio, low:ratio, high:ratio, line",
		table.Computed("point", func(d dosed) any { return d.at }),
		table.Computed("arm", func(d dosed) any { return r.Called(d.Arm) }),
		table.Computed("load", func(d dosed) any { return map[bool]string{true: "measured", false: "as told"}[d.Measured] }),
		table.Computed("line", func(d dosed) any { return map[bool]string{true: "yes"}[d.Fitted] }))
}

func benchNotes(r source.Campaign) []string {
	var notes []string
	if r.Run.Folder != "" {
		notes = append(notes, "campaign folder: "+r.Run.Folder)
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

// Reports renders the verdict on two sets of benchmark reports.
func Reports(r gain.Result, set source.ReportSet) output.Document {
	d := Campaign(source.Campaign{Result: r})
	d.Notes, d.Value = append(d.Notes, set.Notes...), struct {
		gain.Result
		Answer answer.Answer `json:"answer"`
	}{r, answer.OfCampaign(r, gain.Run{})}
	return d
}
