package gain

import (
	"fmt"

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
	// Measurements are all there are, in any order. Of several ok launches of one
	// arm in one pair the earliest counts.
	Measurements []Measurement
	Proof        []Proof
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
	// Loads are the arms' loads, as far as they are known; with further arms in each launch they
	// make the line of time over load.
	Loads map[Arm]Load
	// PointName and Points are the load at which the launches were measured, ascending;
	// empty where there is one load.
	PointName string
	Points    []float64
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

// Measurement is what one launch measured under one arm: one start of the benchmark command, or
// a segment of a launch that holds all arms.
type Measurement struct {
	Unit     int     // number of its pair; of the launch where one holds all arms
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

// Reported is a further metric that a launch reported.
type Reported struct {
	Metric Metric
	Value  float64
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
