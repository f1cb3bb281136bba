package place

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
)

// SchemaVersion is the version of the JSON of Result.
const SchemaVersion = 3

// Result is the JSON of place. Its lists repeat what they are about, so that each row
// stands alone.
type Result struct {
	SchemaVersion int              `json:"schema_version"`
	Kind          string           `json:"kind"` // always "place"
	Experts       int              `json:"experts"`
	MoELayers     []int            `json:"-"`                // of the model, nil where it is not named
	Ranks         router.OptInt    `json:"ranks"`            // undefined where several EP sizes are compared
	Engine        string           `json:"engine,omitempty"` // that recorded the learned counts, where they say it
	Nodes         int              `json:"nodes"`
	Threshold     float64          `json:"threshold"`
	Learned       []Window         `json:"learned"`
	Judged        []Window         `json:"judged"`
	LeftOut       int              `json:"left_out"` // how often learned windows were left out and judged; 0: others are
	Cost          *Cost            `json:"cost"`     // null without a trace that tells time
	NoTime        router.Warning   `json:"no_time"`  // why there is none, or Flat; of the code "no_time"
	Placements    []Placement      `json:"placements"`
	Workloads     []Workload       `json:"workloads"`
	Layers        []Layer          `json:"layers"`
	Drift         []Drift          `json:"drift"`
	Warnings      []router.Warning `json:"warnings"`
	// Slots are where the experts go.
	Slots map[Plan]placement.Slots `json:"-"`
	folds []fold                   // the judged windows in order, with what is learned from for them
}

// Plan names a placement.
type Plan struct {
	Ranks     int `json:"ranks"`
	Redundant int `json:"redundant"`
}

// Placement is one way of learning a placement, with one number of redundant experts on one
// number of ranks. Every max/mean is of the load over ranks, computed per step and layer, then
// averaged over steps, layers and windows; where kinds of windows are left out in turn, over
// the windows of each kind, then over kinds.
type Placement struct {
	Plan
	Name       string        `json:"plan"`                  // PlanRobust, PlanEPLB or PlanMoves
	Default    bool          `json:"default"`               // of its number of redundant experts
	MovedShare router.Number `json:"moved_share"`           // of the copies, which ranks must load
	Moved      int           `json:"moved_experts"`         // that ranks lack in the baseline, over ranks and layers
	Before     string        `json:"baseline"`              // the placement that runs: its file, or Contiguous
	Learned    router.Number `json:"learned_max_over_mean"` // on the windows it was learned from
	// on the others; undefined without any, as are the next three
	Judged   router.Number `json:"judged_max_over_mean"`
	Worst    router.Number `json:"judged_worst_window"`
	Baseline router.Number `json:"baseline_max_over_mean"` // on the same windows
	Change   router.Number `json:"judged_load_change"`     // of the busiest rank's load: judged over baseline, less 1
	NullP95  router.Number `json:"null_p95"`               // the noise floor: Workload.NullP95, mean over windows
	Helped   int           `json:"helped_windows"`         // judged windows whose max/mean falls
	Hurt     int           `json:"hurt_windows"`           // and windows where it rises
	Time     *TimeChange   `json:"predicted_time_change"`  // nil without evidence of time and of other plans
	Others   []TimeChange  `json:"other_steps,omitempty"`  // likewise, of each other kind of steps in the trace
	// Gains are predicted by the judged load alone, from a campaign that measured time over load; at
	// each of its points.
	Gains   []gain.Predicted `json:"predicted_gains,omitempty"`
	Verdict Verdict          `json:"verdict"`
	// Reason is what decided, of the code "placement".
	Reason router.Warning `json:"reason"`
}

// Workload is what the default placement does to one judged window.
type Workload struct {
	Plan
	Window   string        `json:"window"`
	Judged   router.Number `json:"judged_max_over_mean"`
	Baseline router.Number `json:"baseline_max_over_mean"`
	Change   router.Number `json:"judged_load_change"`
	Time     *TimeChange   `json:"predicted_time_change"`
	Repeats  bool          `json:"repeats_learned"` // the counts are a learned window's again
	alike    bool          // the window is of a learned kind
	// what random routing with contiguous experts exceeds once in twenty times, mean over layers
	NullP95 router.Number `json:"null_p95"`
}

// Layer is one layer of a default placement; see Placement.
type Layer struct {
	Plan
	Layer    int           `json:"layer"`
	Learned  router.Number `json:"learned_max_over_mean"`
	Judged   router.Number `json:"judged_max_over_mean"`
	Baseline router.Number `json:"baseline_max_over_mean"`
}

// Drift is how even the running placement is on one window, learned or judged, as they were given.
type Drift struct {
	Ranks        int           `json:"ranks"`
	Window       string        `json:"window"`
	MaxOverMean  router.Number `json:"max_over_mean"`
	Balancedness router.Number `json:"balancedness"` // mean over layers of mean/max, as SGLang takes it
}

// Untimed reports that the best placement is worth a trial by its load alone, as no evidence of time was given.
func (r *Result) Untimed() bool {
	return r.Best().Verdict == Trial && r.NoTime.Args["why"] == NoEvidence
}

// Caveats are the warnings of a result, and why a trace predicts no time.
func (r *Result) Caveats() []router.Warning {
	list := slices.Clone(r.Warnings)
	if r.NoTime.Code != "" && !r.Untimed() {
		list = append(list, r.NoTime)
	}
	return list
}

// Defaults are the default placements, one of each number of ranks and redundant experts;
// all of a result that marks none.
func (r *Result) Defaults() []Placement {
	list := slices.DeleteFunc(slices.Clone(r.Placements), func(p Placement) bool { return !p.Default })
	if len(list) == 0 {
		return r.Placements
	}
	return list
}

// hardly is how much more load on the busiest rank is worth fewer copies.
const hardly = 0.01

// Best is the default placement with the lowest predicted time, or without time the lowest
// max/mean on judged windows, or without that the fewest redundant experts; of a sweep over EP
// sizes, on the most ranks, where balance is hardest. A default with its verdict, fewer redundant
// experts and hardly more is better, for copies cost memory: an interval of time that overlaps
// its own, or without time a judged max/mean less than hardly above.
func (r *Result) Best() Placement {
	defaults := r.Defaults()
	best := slices.MinFunc(defaults, func(a, b Placement) int {
		time := 0
		if a.Time != nil && b.Time != nil {
			time = -cmp.Compare(-a.Time.Estimate, -b.Time.Estimate)
		}
		// undefined is last
		return cmp.Or(cmp.Compare(b.Ranks, a.Ranks), time, -cmp.Compare(-a.Judged, -b.Judged),
			cmp.Compare(a.Redundant, b.Redundant))
	})
	fewest := best
	for _, p := range defaults {
		hardlyWorse := p.Time == nil && best.Time == nil && p.Judged < best.Judged*(1+hardly) ||
			p.Time != nil && best.Time != nil && p.Time.Low <= best.Time.High
		if p.Ranks == best.Ranks && p.Redundant < fewest.Redundant && p.Verdict == best.Verdict && hardlyWorse {
			fewest = p
		}
	}
	return fewest
}
