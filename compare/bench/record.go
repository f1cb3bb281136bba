package bench

import (
	"fmt"
	"strings"
	"time"

	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/points"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/shown"
)

// Kind says what a launch is for.
type Kind string

// The kinds of launches.
const (
	WarmUp   Kind = "warm-up" // before the first pair; its result is kept and not counted
	Timed    Kind = "timed"   // one launch of a pair
	Profiled Kind = "profile" // after the last pair, under the profiler, never counted
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

// Recorded is what Judge needs of the launches that bench has recorded so far, to
// be judged at a confidence. Warm-ups, profiled launches and launches that were
// never started are left out. What traces prove stands in for ranks of which the
// launches themselves say nothing.
func Recorded(c *Campaign, confidence float64, traces gain.TraceProof) gain.Campaign {
	differences, compared := c.allDifferences()
	r := converter{spec: c.Spec}
	var launches []gain.Launch
	for _, l := range c.Launches {
		if l.Kind == Timed && len(l.Attempts) > 0 {
			launches = append(launches, r.launches(l)...)
		}
	}
	ranks, load := c.rankLoad()
	pointName, judged := c.Spec.Points.Judged(r.ranks)
	checks := c.checks()
	if check, ok := c.Spec.checkRate(r.metric); ok {
		checks = append(checks, check)
	}
	design := gain.LaunchPerArm
	if c.Spec.Design.Within() {
		design = gain.WithinLaunch
	}
	return gain.Campaign{
		Design: design, More: c.Spec.more(), Builds: c.Spec.Builds, PointName: pointName, Points: judged,
		Command: launch.Quote(shown.Mask(c.Spec.Command.Normal)), Metric: r.metric, Launches: launches,
		Criteria: gain.Criteria{Threshold: c.Spec.Threshold, Confidence: confidence, Tolerance: c.Spec.WorkTolerance},
		Proof:    c.proofs(traces), Chance: c.Spec.Treatment.Chance(), Ranks: ranks, RankLoad: load, Loads: c.loads(),
		Compared:    compared,
		Differences: differences, Checks: checks,
	}
}

// converter turns launches into what is judged. The first one with a result sets the
// metric and format that all others must have.
type converter struct {
	spec   Spec
	metric gain.Metric
	format string
	ranks  int // that a report names, else those of the spec
}

// launches are a launch that was started, once for each of its points.
func (r *converter) launches(l Launch) (launches []gain.Launch) {
	if r.spec.Design.Within() {
		return r.segments(l)
	}
	last := l.Attempts[len(l.Attempts)-1]
	for i, view := range last.pointAttempts() {
		j := r.measured(view)
		j.Pair, j.Arm, j.Position, j.Note = l.Pair, l.Arm, l.Position, attemptNote(l)
		if len(last.Points) > 0 {
			j.Point = points.Number(last.Points[i].Value)
		} else if l.Point != "" {
			j.Point = points.Number(l.Point)
		}
		launches = append(launches, j)
	}
	return launches
}

// measured is what an attempt reported, or why there is nothing of it to judge.
func (r *converter) measured(a Attempt) gain.Launch {
	if a.Result == nil {
		return gain.Launch{Status: string(a.State)}
	}
	name := r.spec.Metric
	if name == "" {
		name = a.Result.Primary
	}
	m, ok := a.Result.Metric(name)
	if !ok {
		return gain.Launch{Status: "without " + name}
	}
	if r.metric == (gain.Metric{}) {
		r.metric, r.format, r.ranks = m.Metric, a.Result.Format, max(r.spec.Ranks, a.Result.Proof.Ranks)
	}
	if r.metric != m.Metric || r.format != a.Result.Format {
		return gain.Launch{Status: fmt.Sprintf("reports %s (%s) of %s, not %s (%s) of %s", m.Name, m.Definition,
			a.Result.Format, r.metric.Name, r.metric.Definition, r.format)}
	}
	return LaunchOf(*a.Result, m)
}

// attemptNote tells of the attempts that failed.
func attemptNote(l Launch) string {
	var notes []string
	for _, a := range l.Attempts {
		if a.Error != "" {
			notes = append(notes, fmt.Sprintf("attempt %d %s: %s", a.Number, a.State, a.Error))
		}
	}
	return strings.Join(notes, "; ")
}

// LaunchOf is a launch by its report, compared by one of the report's metrics. Its
// pair, arm and position are for the caller to fill in.
func LaunchOf(r metrics.Result, compared metrics.Metric) gain.Launch {
	l := gain.Launch{Status: gain.StatusOK, Value: compared.Value.Float64(), Work: reportedWork(r), Setup: r.Setup}
	for _, m := range r.Metrics {
		if m.Name != compared.Name && m.Value.Defined() {
			l.Secondary = append(l.Secondary, gain.Reported{Metric: m.Metric, Value: m.Value.Float64()})
		}
	}
	return l
}

func reportedWork(r metrics.Result) map[string]float64 {
	w, work := r.Work, make(map[string]float64)
	for name, length := range map[string]router.Number{gain.WorkInputLength: r.Lengths.Input,
		gain.WorkOutputLength: r.Lengths.Output} {
		if length > 0 {
			work[name] = length.Float64()
		}
	}
	for name, count := range map[string]metrics.Count{
		gain.WorkRequests: w.Requests, gain.WorkInputTokens: w.InputTokens, gain.WorkOutputTokens: w.OutputTokens,
		gain.WorkErrors: w.Errors,
	} {
		if count.Known {
			work[name] = float64(count.N)
		}
	}
	return work
}
