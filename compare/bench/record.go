package bench

import (
	"slices"
	"time"

	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
)

// State is how far an attempt at a launch has come.
type State string

// The states. An attempt is Started, perhaps Ran, and then one of the others for
// good.
const (
	Started     State = "running"
	Ran         State = "ran"         // ended with code 0; what it recorded is not read yet
	Finished    State = "finished"    // ran, and everything was read
	Failed      State = "failed"      // exit code, time limit or unreadable output
	Lost        State = "lost"        // the engine did not route as ordered, in a launch that holds all arms
	Interrupted State = "interrupted" // ended by us, or found unfinished when the campaign was resumed
)

// Launch is one place in the order of a campaign: one start of the command, to
// be finished exactly once.
type Launch struct {
	Position int      `json:"position"` // in the order of launching, from 0
	Arm      gain.Arm `json:"arm"`      // empty where it holds all
	Pair     int      `json:"pair"`     // from 0; a launch that holds all arms has its own number here
	// Point is the value of its only point; empty where there are none, or all.
	Point string `json:"point,omitempty"`
	// Attempts are the starts so far, oldest first. At most one is Finished, and
	// it is the last.
	Attempts []Attempt `json:"attempts,omitempty"`
}

// Done returns the attempt that finished, false while there is none.
func (l Launch) Done() (Attempt, bool) {
	if n := len(l.Attempts); n > 0 && l.Attempts[n-1].State == Finished {
		return l.Attempts[n-1], true
	}
	return Attempt{}, false
}

// Attempt is one start of the command, with everything that is needed to see
// later whether it may be compared with another.
type Attempt struct {
	Number      int               `json:"number"` // from 1
	State       State             `json:"state"`
	StartedAt   time.Time         `json:"started_at"`
	DurationNS  int64             `json:"duration_ns"` // wall time of the command; 0 while unknown
	ExitCode    int               `json:"exit_code"`   // −1 when ended by a signal or never known
	Error       string            `json:"error,omitempty"`
	Folder      string            `json:"folder"` // of its raw output, below the campaign folder
	Arguments   []string          `json:"arguments"`
	Environment map[string]string `json:"environment"`      // allow-listed names, secrets redacted
	Groups      []launch.Group    `json:"groups,omitempty"` // of processes that were started
	GPUs        []launch.GPU      `json:"gpus,omitempty"`
	// matches of the treatment's proof line, where it is the best evidence
	LinesFound []evidence.ProofLine `json:"lines_found,omitempty"`
	Warnings   []string             `json:"warnings,omitempty"`
	// Segments are the runs of the measured command: one, one for each point, or all runs in the plan
	// of a launch that holds all arms.
	Segments []Segment `json:"segments,omitempty"`
	// Orders are the routers of the segments: the arm of the launch, or each order in a launch that holds
	// all arms.
	Orders []Ordered `json:"orders,omitempty"`
}

// Segment is one run of the measured command, and what it reported.
type Segment struct {
	control.Run
	Folder     string          `json:"folder,omitempty"` // below the attempt's; empty for the attempt's own
	DurationNS int64           `json:"duration_ns"`
	Result     *metrics.Result `json:"result,omitempty"`
}

// Ordered is the router that segments ran under, and the expert loads recorded meanwhile.
type Ordered struct {
	Sequence int              `json:"sequence"` // of an order within a launch, from 1
	Arm      gain.Arm         `json:"arm"`
	Router   string           `json:"router,omitempty"`
	Ranks    int              `json:"ranks,omitempty"` // that acknowledged it
	Counted  *proof.LoadProof `json:"counted,omitempty"`
}

// view is a segment of an arm that counts, with the order it ran under.
type view struct {
	Attempt
	order  Ordered
	report metrics.Result
}

// views are the segments of an arm that count in all finished launches, each under its order. An engine that is ended
// may leave no counts of its last order: the arm's other orders speak for it.
func (c *Campaign) views(arm gain.Arm) (views []view) {
	for _, l := range c.Launches {
		a, _ := l.Done()
		counted := slices.ContainsFunc(a.Orders, func(o Ordered) bool { return o.Arm == arm && o.Counted != nil })
		for _, o := range a.Orders {
			for _, s := range a.Segments {
				if o.Arm == arm && (o.Counted != nil || !counted) && s.Sequence == o.Sequence && s.Timed && s.Result != nil {
					views = append(views, view{a, o, *s.Result})
				}
			}
		}
	}
	return views
}
