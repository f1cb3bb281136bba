package gain

import (
	"fmt"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Campaign is what a paired campaign recorded, in plain values: the input of
// Judge.
type Campaign struct {
	Command string // as a shell would read it
	Design  Design // empty: LaunchPerArm
	Metric  Metric
	Criteria
	// Launches are all launches, in any order. Of several ok launches of one
	// arm in one pair the earliest counts.
	Launches []Launch
	Proof    []Proof
	// Chance says that the perfect arm routes at random, which is even only on average.
	Chance bool
	// Ranks is how many there are, 0 where it is not known. RankLoad is max/mean of their
	// load in the normal arm, a mean over layers: 1 or more where it was recorded.
	Ranks    int
	RankLoad router.Number
	// Compared says that environment, arguments and files of the arms were
	// recorded and compared; Differences are what was found to differ.
	Compared    bool
	Differences []Difference
	// Checks are what the caller checked itself (hardware, clocks, other
	// processes); they go into the result before those of Judge, and a failed
	// one makes the verdict invalid.
	Checks []Check
	// More are the arms beside Normal and Perfect, such as a load balancer: each pair is
	// then a block that holds every arm once.
	More   []Arm
	Builds Builds
	// Loads are those of the arms, as far as they are known; with further arms in each launch they
	// make the line of time over load.
	Loads map[Arm]Load
	// PointName and Points are the load at which the launches were measured, ascending;
	// empty where there is one load.
	PointName string
	Points    []Point

	fit   *fitted // of a campaign with More arms: what its pairs take their gain from
	point float64 // that all launches are of
}

// Criteria are what a campaign is judged by.
type Criteria struct {
	Threshold  float64 // of the verdict, a fraction
	Confidence float64 // asked of the intervals, in (0, 1)
	Tolerance  float64 // relative difference at which work still counts as equal
}

// DefaultTolerance is the relative difference in work below which two launches
// still did the same: a request more or less in a hundred.
const DefaultTolerance = 0.01

// Launch is what one launch measured under one arm: one start of the benchmark command, or
// a segment of a launch that holds all arms.
type Launch struct {
	Pair     int     // label of its pair; of the launch where one holds all arms
	Block    int     // of its segment within the launch and point, from 0
	Point    float64 // the value of its point; 0 in campaigns without points
	Arm      Arm
	Position int    // place in the order of launches, over the whole campaign; UnknownPosition where it was not recorded
	Status   string // StatusOK, or why there is no value
	Value    float64
	Note     string // retries, interruptions: shown with the pair
	// Work is what the launch did, by name (WorkRequests, …). A name that is
	// absent is unknown, not zero.
	Work map[string]float64
	// Setup is what the launch's report says of its model and of how that was run.
	Setup map[string]string
	// Secondary are the launch's other metrics.
	Secondary []Reported
}

// UnknownPosition is the position of a launch whose place in the order is not
// known; nothing is then said about order and drift.
const UnknownPosition = -1

// StatusOK is the status of a launch that gave its value.
const StatusOK = "ok"

// Names of work that Judge treats specially or that are usual; others are
// compared the same way.
const (
	WorkRequests     = "requests"
	WorkInputTokens  = "input_tokens"
	WorkOutputTokens = "output_tokens"
	WorkInputLength  = "input_length_rms" // root mean square over requests
	WorkOutputLength = "output_length_rms"
	WorkErrors       = "errors" // requests that failed: must be within the tolerance of the requests
)

// where names an arm and ranks of it, ascending, in a sentence.
func where(arm Arm, ranks []int) string {
	switch {
	case ranks[0] == AllRanks:
		return fmt.Sprintf("%s arm", arm)
	case len(ranks) == 1:
		return fmt.Sprintf("%s arm, rank %d", arm, ranks[0])
	}
	return fmt.Sprintf("%s arm, ranks %s", arm, quantity.Ranges(ranks))
}

// Pair is one pair of launches as results show it: every one, complete or not.
type Pair struct {
	Pair  int           `json:"pair"`
	Point router.Number `json:"point,omitempty"` // value of the point, in campaigns with points
	Arm   Arm           `json:"arm,omitempty"`   // the further arm whose value is Perfect
	// Order is "AB" when the normal launch (A) ran first, "BA" when the perfect
	// one did, empty when that is not known.
	Order string `json:"order"`
	// Normal and Perfect are the metric's values.
	Normal  router.Number `json:"normal"`
	Perfect router.Number `json:"perfect"`
	Gain    router.Number `json:"gain"`   // fraction
	Status  string        `json:"status"` // PairComplete or PairIncomplete
	Note    string        `json:"note"`
}

// The states of a pair. Only complete pairs enter the gain.
const (
	PairComplete   = "complete"
	PairIncomplete = "incomplete"
)

// Result is the result of the bench verb.
type Result struct {
	SchemaVersion int     `json:"schema_version"`
	Kind          string  `json:"kind"` // always "bench"
	Command       string  `json:"command"`
	Design        Design  `json:"design"`
	Metric        Metric  `json:"metric"`
	Threshold     float64 `json:"threshold"` // fraction
	// Balance is the grade of the weakest proof: None unless every rank of both arms
	// is proved. Chance says that the perfect arm routes at random.
	Balance Grade `json:"balance"`
	Chance  bool  `json:"chance,omitempty"`
	// Arms are all arms of a campaign with further ones, or of two builds; Share is how
	// much of the ceiling the first further one recovers.
	Arms  []ArmGain `json:"arms,omitempty"`
	Share *Share    `json:"share_of_ceiling,omitempty"`
	Dose  *Dose     `json:"dose,omitempty"`
	// Points are the gains at each load. Gain is then that of the point whose interval
	// begins highest, and all intervals hold together at SimultaneousConfidence.
	Points                 []PointGain `json:"points,omitempty"`
	Crossover              *Crossover  `json:"crossover,omitempty"`
	SimultaneousConfidence float64     `json:"simultaneous_confidence,omitempty"`

	// Launches are those that hold all arms, with their blocks: see WithinLaunch.
	Launches []LaunchGain `json:"launches,omitempty"`
	// Pairs are by pair. A launch that holds all arms is one, with the geometric means of
	// the segments of its complete blocks.
	Pairs   []Pair  `json:"pairs"`
	Gain    Gain    `json:"gain"`
	Verdict Verdict `json:"verdict"`
	// Outliers are the launches far from the others of their arm, by position; where there
	// are any, the interval of the gain is the wider one of the package comment.
	Outliers []Outlier `json:"outliers,omitempty"`
	// PairsNeeded is how many pairs in all would decide an inconclusive campaign, and
	// its bounds are those of the spread between pairs at the confidence of the gain. Of
	// several points they are those of the point that needs most: undefined where one is
	// inconclusive and no number of pairs is known that would decide it.
	PairsNeeded     router.Number   `json:"pairs_needed"`
	PairsNeededLow  router.Number   `json:"pairs_needed_low"`
	PairsNeededHigh router.Number   `json:"pairs_needed_high"`
	Precision       Precision       `json:"precision"`
	Secondary       []SecondaryGain `json:"secondary"` // by name
	Proof           []Proof         `json:"proof"`     // by arm and rank
	Differences     []Difference    `json:"differences"`
	Checks          []Check         `json:"checks"`
}

// Called is the name of an arm for people: that of random routing is not perfect, and
// builds have names of their own.
func (r Result) Called(a Arm) Arm {
	if a == Perfect && r.Chance {
		return ChanceArm
	}
	return r.builds().Called(a)
}

// builds are the arms of a result that has two.
func (r Result) builds() (b Builds) {
	if len(r.Arms) == len(b) {
		b = Builds{r.Arms[0].Name, r.Arms[1].Name}
	}
	return b
}

// Run is how a campaign stands that has a result.
type Run struct {
	Folder         string
	Launches, Left int     // finished, and still to be launched
	Confidence     float64 // asked for
	Treatment      string  // by name
	Server         bool    // launches start one, and measure it by a client
	// Rejudged are the flags by which it is judged, other than those it was run under.
	Rejudged []string
}

// Warnings are what to know of how the campaign was judged.
func (r Run) Warnings() (all []router.Warning) {
	if len(r.Rejudged) > 0 {
		flags := "--" + strings.Join(r.Rejudged, ", --")
		all = append(all, router.Warn("rejudged", "", "flags", flags))
	}
	return all
}

// Upgrade turns a result of an older version into one of today: its word for a gain below the threshold,
// and a verdict of fewer launches than one takes today.
func (r *Result) Upgrade() {
	if r.SchemaVersion >= SchemaVersion {
		return
	}
	r.SchemaVersion = SchemaVersion
	today := func(v *Verdict, n int) {
		switch {
		case r.Design == WithinLaunch && n < decidingLaunches && !v.Refused():
			*v = NoVerdict
		case *v == "not significant":
			*v = NotSignificant
		}
	}
	today(&r.Verdict, r.Gain.N)
	for i := range r.Points {
		today(&r.Points[i].Verdict, r.Points[i].Gain.N)
	}
	for i := range r.Arms {
		if r.Arms[i].Verdict != "" {
			today(&r.Arms[i].Verdict, r.Arms[i].Gain.N)
		}
	}
}

// SchemaVersion is the version of Result's JSON. Version 4 says "below the threshold", and no verdict of
// fewer than five launches that hold all arms. Version 2 replaced the keys of
// Student's t, the sign-flip test and the bootstrap by those of the crossover t.
const SchemaVersion = 4

// StepsNS are the times of a step, in nanoseconds, in the complete pairs of the normal or
// the perfect arm; see Metric.StepNS. The warning says why there are none, else it has no code.
func (r Result) StepsNS(arm Arm, tokens float64) (ns []float64, why router.Warning) {
	const noSteps = "campaign_step_time"
	if len(r.Points) > 0 {
		return nil, router.Warn(noSteps, "", "why", "points")
	}
	why = router.Warn(noSteps, "", "why", "no_pair")
	for _, p := range r.Pairs {
		if p.Arm != "" || p.Status != PairComplete {
			continue
		}
		value := map[Arm]router.Number{Normal: p.Normal, Perfect: p.Perfect}[arm]
		step := r.Metric.StepNS(value.Float64(), tokens)
		if !step.Defined() {
			return nil, router.Warn(noSteps, "", "why", "metric", "name", r.Metric.Name, "unit", r.Metric.Unit)
		}
		ns, why = append(ns, step.Float64()), router.Warning{}
	}
	return ns, why
}
