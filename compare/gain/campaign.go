package gain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// Recorded is what a campaign recorded, in plain values: the input of Judge.
type Recorded struct {
	Head
	// Measurements are all there are, in any order.
	Measurements []Measurement
	Ranks        int // 0 where it is not known
	// Compared says that environment and arguments of the arms were recorded and compared.
	Compared bool
	// More are the arms beside Normal and Perfect, such as a load balancer: each pair is
	// then a block that holds every arm once.
	More []Arm
	// PointName and Points are the load at which the launches were measured, ascending;
	// empty where there is one load.
	PointName string
	Points    []float64
}

// Head is what a recorded campaign and its result have in common.
type Head struct {
	Command     string       `json:"command"` // as a shell would read it
	Design      Design       `json:"design"`
	Metric      Metric       `json:"metric"`
	Threshold   float64      `json:"threshold"`        // of the verdict, a fraction
	Chance      bool         `json:"chance,omitempty"` // the perfect arm routes at random, which is even only on average
	Builds      Builds       `json:"builds,omitzero"`  // that are compared in place of normal and perfect
	Proof       []Proof      `json:"proof"`            // of a result: by arm and rank
	Differences []Difference `json:"differences"`      // of the arms
	// Checks are what the caller checked itself (clocks, other processes), of which a failed one makes the verdict
	// invalid; in a result, the checks of Judge follow.
	Checks []Check `json:"checks"`
}

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
	Note     string // interruptions: shown with the pair
	// Work is what the launch did, by name (WorkRequests, …). A name that is
	// absent is unknown, not zero.
	Work map[string]float64
	// Setup is what the launch's report says of its model and of how that was run.
	Setup map[string]string
	// Secondary are the values of the launch's other metrics.
	Secondary map[Metric]float64
	Load      Load    // of the ranks meanwhile
	Attention float64 // how uneven it was over data-parallel ranks; 0 where that is not known

	off float64 // its logarithm less the median of its arm: in the campaign, or in its launch where that holds all arms
}

// Load is how uneven the ranks' loads are: max/mean, a mean over layers; 0 where that is not known.
type Load struct {
	MaxOverMean router.Number `json:"rank_max_over_mean"`
	Measured    bool          `json:"measured"` // recorded; else as the arm's router was told
}

// UnknownPosition is the position of a launch whose place in the order is not
// known; nothing is then said about the order.
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
	WorkConcurrency  = "concurrent_requests" // their measured mean: may differ by a factor of 2
	WorkErrors       = "errors"              // requests that failed: must be within the tolerance of the requests
	// WorkImplied is what a report's throughput did in its duration, which contradict each other where arms of equal
	// work differ in it: by a factor of 2, as short durations are printed with few digits.
	WorkImplied = "throughput_times_duration"
)

// sorted is the campaign with copies of its lists in the order of results.
func (r Recorded) sorted() Recorded {
	r.Measurements = slices.SortedStableFunc(slices.Values(r.Measurements), func(a, b Measurement) int {
		return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Block, b.Block), cmp.Compare(a.Position, b.Position),
			cmp.Compare(a.Arm, b.Arm))
	})
	r.Proof = append([]Proof{}, slices.SortedStableFunc(slices.Values(r.Proof), func(a, b Proof) int {
		return cmp.Or(cmp.Compare(a.Arm, b.Arm), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Evidence, b.Evidence))
	})...)
	r.Differences = append([]Difference{},
		slices.Compact(slices.SortedFunc(slices.Values(r.Differences), byText[Difference]))...)
	return r
}

// byText orders values as they are printed.
func byText[T any](a, b T) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) }

func (r *Recorded) within() bool { return r.Design == WithinLaunch }
