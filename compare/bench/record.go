package bench

import (
	"time"

	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// Kind says what a launch is for.
type Kind string

// The kinds of launches.
const (
	WarmUp Kind = "warm-up" // before the first pair; its result is kept and not counted
	Timed  Kind = "timed"   // one launch of a pair
)

// State is how far an attempt at a launch has come.
type State string

// The states. An attempt is Running, perhaps Ran, and then one of the others for
// good.
const (
	Running     State = "running"
	Ran         State = "ran"         // ended with code 0; its output is not read yet
	Finished    State = "finished"    // ran, and its output was read
	Failed      State = "failed"      // exit code, time limit or unreadable output
	Interrupted State = "interrupted" // ended by us, or found unfinished when the campaign was resumed
)

// Launch is one place in the order of a campaign: one start of the command, to
// be finished exactly once.
type Launch struct {
	Position int      `json:"position"` // in the order of launching, from 0
	Kind     Kind     `json:"kind"`
	Arm      gain.Arm `json:"arm"`
	Pair     int      `json:"pair"`  // from 0 within its kind; −1 where launches are not paired
	Place    int      `json:"place"` // 0 launched first in its pair, 1 second, …
	// Point is the value of its only point; empty where there are none, or all.
	Point string `json:"point,omitempty"`
	// Attempts are the starts so far, oldest first. At most one is Finished, and
	// it is the last.
	Attempts []Attempt `json:"attempts"`
}

// Done returns the attempt that finished, false while there is none.
func (l Launch) Done() (Attempt, bool) {
	if n := len(l.Attempts); n > 0 && l.Attempts[n-1].State == Finished {
		return l.Attempts[n-1], true
	}
	return Attempt{}, false
}

// Attempt is one start of the command, with everything that is needed to see
// later whether it may be compared with another. What has a column of its own in
// the campaign file is no part of its JSON.
type Attempt struct {
	Number      int               `json:"-"` // from 1
	Session     int               `json:"-"` // which call of Run started it, from 1
	State       State             `json:"-"`
	StartedAt   time.Time         `json:"-"`
	DurationNS  int64             `json:"-"` // wall time of the command; 0 while unknown
	ExitCode    int               `json:"-"` // −1 when ended by a signal or never known
	Error       string            `json:"-"`
	Folder      string            `json:"-"` // of its raw output, below the campaign folder
	Arguments   []string          `json:"arguments"`
	Environment map[string]string `json:"environment"` // allow-listed names, secrets redacted
	// OwnVariables are those that the command itself set, changed or removed, as the
	// system showed its process: allow-listed values, hashes of others; null where the
	// system did not show it.
	OwnVariables map[string]string `json:"own_variables"`
	Groups       []launch.Group    `json:"groups,omitempty"` // of processes that were started
	Made         time.Time         `json:"made,omitzero"`    // when its folder was, by the clock of the file system
	Files        []evidence.File   `json:"files,omitempty"`
	GPUs         []launch.GPU      `json:"gpus,omitempty"`
	// matches of the treatment's proof line, where it is the best evidence
	LinesFound []evidence.ProofLine `json:"lines_found,omitempty"`
	Counted    *proof.LoadProof     `json:"counted,omitempty"` // loads the launch recorded in files of its own
	// OthersCPU is how many cores other processes kept busy during the launch, on
	// average; undefined where the system does not tell.
	OthersCPU router.Number `json:"others_cpu"`
	// of the machine that launched it; 0 in campaigns that did not record them
	Cores  int             `json:"cores"`
	Result *metrics.Result `json:"result,omitempty"` // nil unless Finished; without its Steps
	// IterationRows is how many rows of an iteration log the launch kept, in its output or
	// in the file that the spec names.
	IterationRows int      `json:"iteration_rows,omitempty"`
	Warnings      []string `json:"warnings,omitempty"`
	// Points are those measured, of a launch that has several; Result is nil then.
	Points []PointRun `json:"points,omitempty"`
	// Segments are the runs of the client, of a launch that holds all arms, and Orders what
	// they ran under; Result is nil then.
	Segments []Segment `json:"segments,omitempty"`
	Orders   []Ordered `json:"orders,omitempty"`
}
