package place

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// Result is the JSON of place. Its lists repeat what they are about, so that each row
// stands alone.
type Result struct {
	SchemaVersion int              `json:"schema_version"`
	Kind          string           `json:"kind"` // always "place"
	Experts       int              `json:"experts"`
	MoELayers     []int            `json:"-"`     // of the model, nil where it is not named
	Ranks         router.OptInt    `json:"ranks"` // undefined where several EP sizes are compared
	Nodes         int              `json:"nodes"`
	Threshold     float64          `json:"threshold"`
	Learned       []Window         `json:"learned"`
	Judged        []Window         `json:"judged"`
	LeftOut       int              `json:"left_out"` // how often learned windows were left out and judged; 0: others are
	Cost          *Cost            `json:"cost"`     // null without evidence of time
	NoTime        router.Warning   `json:"no_time"`  // why there is none, of the code "no_time"
	Placements    []Placement      `json:"placements"`
	Workloads     []Workload       `json:"workloads"`
	Layers        []Layer          `json:"layers"`
	Plans         []LeftOut        `json:"plans"`
	Curve         []Point          `json:"curve"`
	Copies        []Copies         `json:"copies"`
	Phases        []Phase          `json:"phases"`
	Rebalance     *Rebalance       `json:"rebalance,omitempty"` // nil unless it is asked for
	Warnings      []router.Warning `json:"warnings"`
	// Slots are where the experts go.
	Slots map[Plan]counts.Slots `json:"-"`
	folds []fold                // the judged windows in order, with what is learned from for them
}

// Plan names a placement.
type Plan struct {
	Ranks     int `json:"ranks"`
	Redundant int `json:"redundant"`
}

// Placement is one number of redundant experts on one number of ranks. Every max/mean is
// of the load over ranks, computed per step and layer, then averaged over steps, layers
// and windows.
type Placement struct {
	Plan
	Name       string        `json:"plan"`                  // PlanRobust, …
	Default    bool          `json:"default"`               // of its number of redundant experts
	MovedShare router.Number `json:"moved_share"`           // of the copies, which ranks must load
	Before     string        `json:"baseline"`              // the placement that runs: its file, or Contiguous
	Learned    router.Number `json:"learned_max_over_mean"` // on the windows it was learned from
	// on the others; undefined without any, as are the next two
	Judged   router.Number `json:"judged_max_over_mean"`
	Baseline router.Number `json:"baseline_max_over_mean"` // on the same windows
	Change   router.Number `json:"judged_load_change"`     // of the busiest rank's load: judged over baseline, less 1
	NullP95  router.Number `json:"null_p95"`               // the noise floor: Workload.NullP95, mean over windows
	Helped   int           `json:"helped_windows"`         // judged windows whose max/mean falls
	Hurt     int           `json:"hurt_windows"`           // and those where it rises
	Time     *TimeChange   `json:"predicted_time_change"`  // nil without evidence of time and of other plans
	// Gains are predicted by the judged load alone, from a campaign that measured time over load; at
	// each of its points.
	Gains []gain.Predicted `json:"predicted_gains,omitempty"`
	Price
	Verdict Verdict `json:"verdict"`
	// Reason is what decided, of the code "placement".
	Reason router.Warning `json:"reason"`
}

// Workload is what a placement does to one judged window.
type Workload struct {
	Plan
	Window   string        `json:"window"`
	Judged   router.Number `json:"judged_max_over_mean"`
	Baseline router.Number `json:"baseline_max_over_mean"`
	Change   router.Number `json:"judged_load_change"`
	Time     *TimeChange   `json:"predicted_time_change"`
	Repeats  bool          `json:"repeats_learned"` // the counts are those of a learned window again
	// of contiguous: what random routing exceeds once in twenty times, mean over layers
	NullP95 router.Number `json:"null_p95"`
}

// Layer is one layer of a placement; see Placement.
type Layer struct {
	Plan
	Layer    int           `json:"layer"`
	Learned  router.Number `json:"learned_max_over_mean"`
	Judged   router.Number `json:"judged_max_over_mean"`
	Baseline router.Number `json:"baseline_max_over_mean"`
	// By rank, the load over the mean rank's, added over steps, mean over judged windows, and of
	// the placement over learned ones too.
	BaselineRanks []router.Number `json:"baseline_rank_load"`
	LearnedRanks  []router.Number `json:"learned_rank_load"`
	JudgedRanks   []router.Number `json:"judged_rank_load"`
}

// Caveats are the warnings of a result, why it predicts no time, and what its best placement does
// to single windows and its cost of time leaves open.
func (res *Result) Caveats() []router.Warning {
	list, best := slices.Clone(res.Warnings), res.Best()
	warn := func(code, window string, args ...any) { list = append(list, router.Warn(code, window, args...)) }
	if res.NoTime.Code != "" {
		list = append(list, res.NoTime)
	}
	for _, w := range res.Workloads {
		switch {
		case w.Plan != best.Plan:
		case w.Change > 0:
			warn("raises_load", w.Window, "change", w.Change, "judged", w.Judged, "baseline", w.Baseline)
		case w.Time != nil && w.Time.Estimate > 0:
			warn("costs_time", w.Window, "change", w.Time.Estimate, "of", w.Time.Of)
		}
	}
	c := res.Cost
	if c == nil {
		return list
	}
	if c.Beyond() {
		warn(Extrapolated, "", "tokens", c.StepTokens(), "least", c.LeastTokens, "most", c.MostTokens)
	}
	if !c.StepNS.Defined() {
		warn("no_step_time", "")
	}
	if t, m := best.Time, c.Measured; t != nil && m != nil && 1/(1+t.Estimate)-1 > m.High {
		warn("more_than_balance", "", "gain", 1/(1+t.Estimate)-1, "measured", m.Estimate, "high", m.High)
	}
	if c.LateHosts {
		warn("late_hosts", "")
	}
	return list
}

// Extrapolated is the code of the warning that time is predicted for a step of more or fewer tokens
// than were measured.
const Extrapolated = "extrapolated"

// Defaults are the default placements, one of each number of ranks and redundant experts;
// all of a result that marks none.
func (res *Result) Defaults() []Placement {
	list := slices.DeleteFunc(slices.Clone(res.Placements), func(p Placement) bool { return !p.Default })
	if len(list) == 0 {
		return res.Placements
	}
	return list
}

// Best is the default placement with the lowest max/mean on what was left out of the learned
// windows; where nothing was, with the lowest predicted time, or without time the lowest
// judged max/mean, or without that the fewest redundant experts; of a sweep over EP sizes, on
// the most ranks, where balance is hardest. Of those with its verdict that are hardly
// worse, it is the one with the fewest redundant experts, which cost memory: paired on what was
// left out, more copies do not pay; or, where nothing was, the interval of time overlaps its own,
// or without time the judged max/mean is less than the threshold above its own.
func (res *Result) Best() Placement {
	defaults, leftOut := res.Defaults(), map[Plan]router.Number{}
	for _, l := range res.Plans {
		if l.Default {
			leftOut[l.Plan] = l.Judged
		}
	}
	best := slices.MinFunc(defaults, func(a, b Placement) int {
		unseen := -cmp.Compare(-leftOut[a.Plan], -leftOut[b.Plan]) // 0 for none
		if unseen == 0 && a.Time != nil && b.Time != nil {
			unseen = -cmp.Compare(-a.Time.Estimate, -b.Time.Estimate)
		}
		// undefined is last
		return cmp.Or(cmp.Compare(b.Ranks, a.Ranks), unseen, -cmp.Compare(-a.Judged, -b.Judged),
			cmp.Compare(a.Redundant, b.Redundant))
	})
	hardlyWorse := func(p Placement) bool {
		for _, c := range res.Copies {
			if c.Ranks == p.Ranks && c.Fewer == p.Redundant && c.More == best.Redundant {
				return !c.Pay
			}
		}
		if p.Time != nil && best.Time != nil {
			return p.Time.Low <= best.Time.High
		}
		return p.Time == nil && best.Time == nil && p.Judged.Float64() < best.Judged.Float64()*(1+res.Threshold)
	}
	fewest := best
	for _, p := range defaults {
		if p.Ranks == best.Ranks && p.Redundant < fewest.Redundant && p.Verdict == best.Verdict && hardlyWorse(p) {
			fewest = p
		}
	}
	return fewest
}
