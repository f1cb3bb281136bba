package bench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/points"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
)

// Segment is one run of the client in a launch that holds all arms.
type Segment struct {
	control.Run
	Folder     string          `json:"folder,omitempty"` // below the attempt's
	DurationNS int64           `json:"duration_ns"`
	Counts     bool            `json:"counts"`           // timed, and under its order to its end
	Result     *metrics.Result `json:"result,omitempty"` // without its Steps
}

// Ordered is an order that all ranks acknowledged, and what the launch recorded under it.
type Ordered struct {
	Sequence int              `json:"sequence"`
	Arm      gain.Arm         `json:"arm"`
	Router   string           `json:"router"`
	Ranks    int              `json:"ranks"` // that acknowledged
	Counted  *proof.LoadProof `json:"counted,omitempty"`
}

// The environment of an engine that changes its router while it runs.
const (
	controlVariable = "MOEBALANCE_CONTROL"
	routerVariable  = "MOEBALANCE_ROUTER"
	controlFolder   = "control" // below the attempt's
)

// alternates reports whether the command itself leads the launch through its segments, and
// prints the record: there is no server to lead.
func (s Spec) alternates() bool {
	return s.Design.Within() && len(s.Command.Server) == 0 && s.Control == ""
}

// routers are the arms by what routes in them.
func (s Spec) routers() (arms []control.Arm) {
	for _, a := range s.arms() {
		router := control.Off
		if a == gain.Perfect {
			router = control.Perfect
		}
		if own := s.arm(a).Env[routerVariable]; own != "" {
			router = own
		}
		arms = append(arms, control.Arm{Name: string(a), Router: router})
	}
	return arms
}

// Routers reports whether an arm is a router, which needs launches that hold all arms.
func (s Spec) Routers() bool {
	return slices.ContainsFunc(s.Arms, func(a ArmSpec) bool { return a.Env[routerVariable] != "" })
}

// CheckWithin reports what launches that hold all arms cannot do.
func (s Spec) CheckWithin() error {
	if !s.Design.Within() {
		if s.Control != "" {
			return fmt.Errorf("--control needs launches that hold both arms: remove --pairs")
		}
		return nil
	}
	switch {
	case !s.Treatment.Switches || s.Builds.Named():
		return fmt.Errorf("launches that hold both arms need --treatment hook; other switches are read when an engine " +
			"starts: use --pairs")
	case s.Points != nil && s.perLaunch() != nil:
		return fmt.Errorf("{%s} in the command of the engine needs a launch for each value: use --pairs", s.Points.Name)
	case s.Points != nil && !s.perClient():
		return fmt.Errorf("--points %s: write {%[1]s} in --client, which runs once for each value", s.Points.Name)
	case s.alternates() && (s.Points != nil || len(s.more()) > 0):
		return fmt.Errorf("--points and --arm need a --server and its --client within a launch")
	case s.Control != "" && s.Design.Launches > 1:
		return fmt.Errorf("--control is one launch of a server that runs: remove --launches, or start the server with " +
			"--server")
	}
	for _, a := range s.Arms {
		if len(a.Flags) > 0 || len(a.Env) != 1 || a.Env[routerVariable] == "" {
			return fmt.Errorf("--arm %s: within a launch only the router changes: want --arm %[1]s=ROUTER, such as "+
				"target:1.2; for other differences use --pairs", a.Name)
		}
	}
	return nil
}

// planOf is what a launch measures.
func (s Spec) planOf(l Launch) (p control.Plan) {
	p.Blocks = control.Orders(s.routers(), s.Design.Blocks, l.Pair, s.Design.Seed)
	for b := range p.Blocks {
		if s.Points != nil {
			p.Points = append(p.Points, points.Drawn(s.Design.Seed, l.Pair*s.Design.Blocks+b, s.Points.Values))
		}
	}
	return p
}

// followed are the variables of an engine that follows a folder; of one that runs already,
// and where a launch is of one arm, none.
func (s Spec) followed(folder string) []launch.Variable {
	if !s.Design.Within() || s.Control != "" {
		return nil
	}
	return []launch.Variable{{Name: controlVariable, Value: filepath.Join(folder, controlFolder)}, {Name: routerVariable}}
}

// follow makes the job one whose engine is led through its segments.
func (r *runner) follow(l Launch, a *Attempt, job *launch.Job) error {
	folder := r.Spec.Control
	if folder == "" {
		folder = filepath.Join(job.Folder, controlFolder)
		if err := os.Mkdir(folder, 0o777); err != nil {
			return err
		}
	} else if doubt := control.Folder(folder).Doubt(); doubt != "" {
		a.Warnings = append(a.Warnings, doubt)
	}
	if !r.Spec.alternates() {
		s := segments{runner: r, launch: l, number: a.Number, folder: job.Folder, control: control.Folder(folder)}
		job.Runs, job.Drive = nil, s.drive
	}
	return nil
}

// segments leads an attempt through its segments.
type segments struct {
	*runner
	launch  Launch
	number  int // of the attempt
	folder  string
	control control.Folder
	driver  *control.Driver
}

// live is the attempt as it is written down.
func (s *segments) live() *Attempt { return &s.Launches[s.launch.Position].Attempts[s.number-1] }

// drive leads the launch; run runs a client.
func (s *segments) drive(ctx context.Context, run func(context.Context, launch.Run) error) error {
	last, err := s.control.Last()
	if err != nil {
		return fmt.Errorf("--control: %w", err)
	}
	plan := s.Spec.planOf(s.launch)
	s.drivenBy(s.control, last)
	s.driver.Ready = s.follows
	s.driver.Run = func(ctx context.Context, r control.Run) error { return s.client(ctx, r, run) }
	var unsaved error
	s.driver.Block = func(block int) {
		unsaved = s.save(s.launch, *s.live())
		s.report(Event{Stage: Measured, Launch: s.Launches[s.launch.Position], Attempt: *s.live(), Block: block + 1,
			Blocks: len(plan.Blocks)})
	}
	if err := s.driver.Drive(ctx, plan); err != nil {
		return err
	}
	return unsaved
}

// drivenBy makes the driver, of ranks behind a channel.
func (s *segments) drivenBy(ranks control.Channel, last int) {
	s.driver = &control.Driver{
		Channel: ranks, Ranks: s.Spec.Ranks, Last: last, Now: s.host.Now, Sleep: s.host.Sleep, First: firstRun,
		Stays: s.Spec.Control != "",
		Settled: func(runs []control.Run, counts bool) {
			for i := range s.live().Segments {
				seg := &s.live().Segments[i]
				seg.Counts = seg.Counts || counts && slices.ContainsFunc(runs,
					func(r control.Run) bool { return r.Number == seg.Number })
			}
		},
	}
}

// firstRun is how long the first run of a client may take: engines compile in it.
const firstRun = 30 * time.Minute

// segmentFolder is the folder of a run of the client, below its attempt's.
var segmentFolder = regexp.MustCompile(`^run-\d{3,}-`)

// SegmentOf is the campaign in whose folder a file is that a run of the client wrote within a launch
// which holds all arms; false for any other file.
func SegmentOf(path string) (campaign string, ok bool) {
	path, err := filepath.Abs(path)
	for at := filepath.Dir(path); err == nil && at != filepath.Dir(at); at = filepath.Dir(at) {
		launches := filepath.Dir(filepath.Dir(at))
		if campaign = filepath.Dir(launches); segmentFolder.MatchString(filepath.Base(at)) &&
			filepath.Base(launches) == launchesFolder && IsCampaign(campaign) {
			return campaign, true
		}
	}
	return "", false
}

// client runs the client once and reads its report.
func (s *segments) client(ctx context.Context, r control.Run, run func(context.Context, launch.Run) error) error {
	name := fmt.Sprintf("run-%03d-%s", r.Number, r.Arm)
	if !r.Timed {
		name += "-untimed"
	}
	folder := filepath.Join(s.folder, name)
	out := filepath.Join(folder, outName)
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if s.Spec.Reset != "" {
		if err := launch.Post(ctx, s.Spec.Reset); err != nil {
			return fmt.Errorf("--reset: %w", err)
		}
	}
	p := s.Spec.placeholders(s.launch, out, r.Point)
	p.arm, p.seed = gain.Arm(r.Arm), s.Spec.Design.seed(s.launch.Position*mostRuns+r.Number)
	began := s.host.Now()
	err := run(ctx, launch.Run{Folder: folder, Words: p.fill(s.Spec.Command.Normal), Limit: r.Limit})
	if err != nil {
		return err
	}
	seg := Segment{Run: r, Folder: name, DurationNS: max(0, int64(s.host.Now().Sub(began)))}
	result, err := s.parse(s.outputOf(s.launch, folder, r.Point))
	if err != nil {
		return fmt.Errorf("%w: %w", errUnusable, err)
	}
	seg.Result = &result
	s.keep(seg)
	return nil
}

// keep adds a segment to its attempt. Whether it counts is settled later.
func (s *segments) keep(seg Segment) {
	a := s.live()
	a.Segments = append(a.Segments, seg)
	if n := len(a.Orders); n == 0 || a.Orders[n-1].Sequence != seg.Sequence {
		a.Orders = append(a.Orders, Ordered{Sequence: seg.Sequence, Arm: gain.Arm(seg.Arm), Router: seg.Router})
	}
	if seg.Timed {
		a.Orders[len(a.Orders)-1].Ranks = len(s.driver.Acks())
	}
}

// mostRuns bounds the runs of a launch, so that no two have the same seed.
const mostRuns = 1 << 12

// follows looks at the counts of the untimed segments: an engine that says that it has
// changed, and has not, is found before anything is timed.
func (s *segments) follows() error {
	a := s.live()
	s.readOrders(s.launch, a, s.folder)
	for _, o := range a.Orders {
		if o.Counted == nil || !slices.Contains(gain.Arms[:], o.Arm) {
			continue
		}
		view := *a
		view.Counted, view.Result = o.Counted, nil
		for _, p := range s.Spec.rules().Of(o.Arm, s.Spec.shown(view)) {
			if p.Severity() > 1 {
				return &control.NotFollowed{Seen: fmt.Sprintf("all ranks acknowledged %s, but %s",
					o.Arm.Label(), p.Evidence)}
			}
		}
	}
	return nil
}

// readOrders reads the expert counts of each order, as far as they are written: an engine
// writes those of an order when the next one comes, or when it ends.
func (r *runner) readOrders(l Launch, a *Attempt, folder string) (err error) {
	path := r.countsOf(l, folder, l.Point)
	if path == "" || r.host.Counts == nil {
		return nil
	}
	_, placement := a.placement(r.Spec.Folder)
	read := 0
	for i := range a.Orders {
		o := &a.Orders[i]
		of := filepath.Join(path, fmt.Sprintf("sequence%d", o.Sequence))
		counted, failed := r.host.Counts(of, placement)
		if failed != nil {
			err = cmp.Or(err, failed)
			continue
		}
		counted.Recorded = evidence.RecordedShare(of)
		if r.Spec.Control == "" {
			counted.Foreign = evidence.Foreign(of, filepath.Join(folder, outName), a.Made)
		}
		o.Counted = &counted
		read++
	}
	if read > 0 {
		return nil
	}
	return err
}

// underOrders are an attempt once for each order of an arm under which something was timed,
// with what was recorded under it. Of the last one an engine that is ended may leave no counts:
// those of the arm's others speak for it.
func (a Attempt) underOrders(arm gain.Arm) (attempts []Attempt) {
	counted := slices.ContainsFunc(a.Orders, func(o Ordered) bool { return o.Arm == arm && o.Counted != nil })
	for _, o := range a.Orders {
		view := a
		view.Segments, view.Counted, view.Points, view.LinesFound = nil, o.Counted, nil, nil
		for _, s := range a.Segments {
			if s.Sequence != o.Sequence {
				continue
			}
			view.Points = append(view.Points, PointRun{Value: s.Point, Result: s.Result})
			if s.Counts && view.Result == nil {
				view.Result = s.Result
			}
		}
		if o.Arm != arm || view.Result == nil || o.Counted == nil && counted {
			continue
		}
		view.Orders = []Ordered{o}
		attempts = append(attempts, view)
	}
	return attempts
}

// segments are those of a launch that holds all arms, to be judged.
func (r *converter) segments(l Launch) (launches []gain.Measurement) {
	last := l.Attempts[len(l.Attempts)-1]
	note := attemptNote(l)
	if last.State != Finished && last.State != Running && last.State != Ran {
		return []gain.Measurement{{Unit: l.Pair, Arm: gain.Normal, Status: string(last.State), Note: note,
			Position: gain.UnknownPosition}}
	}
	for _, s := range last.Segments {
		if !s.Timed {
			continue
		}
		j := r.measured(Attempt{State: last.State, Result: s.Result})
		if !s.Counts {
			j = gain.Measurement{Status: "lost its router: measured again"}
		}
		j.Unit, j.Block, j.Arm, j.Position, j.Note = l.Pair, s.Block, gain.Arm(s.Arm), len(launches), note
		if s.Point != "" {
			j.Point = points.Number(s.Point)
		}
		launches, note = append(launches, j), ""
	}
	return launches
}

// checkPrompts says whether requests met a cache that the other arm had filled.
func (c *Campaign) checkPrompts() gain.Check {
	const name = "fresh_prompts"
	switch {
	case in(c.Spec.Command.Normal, "seed"):
		return gain.NewCheck(name, gain.Pass, "drawn")
	case c.Spec.Reset != "":
		return gain.NewCheck(name, gain.Pass, "reset")
	case c.Spec.alternates():
		return gain.NewCheck(name, gain.Unknown, "command")
	}
	return gain.NewCheck(name, gain.Warn, "same", "seed", "{seed}")
}

// readWithin reads what a launch that holds all arms has left behind.
func (r *runner) readWithin(l Launch, a *Attempt, folder string) error {
	if r.Spec.alternates() {
		if err := r.readRecord(l, a, folder); err != nil {
			return fmt.Errorf("%w: %w", errUnusable, err)
		}
	}
	if err := r.readOrders(l, a, folder); err != nil && r.Spec.Counts != "" {
		return fmt.Errorf("%w: the expert counts: %w", errUnusable, err)
	} else if err != nil {
		a.warnOfCounts(err, r.countsOf(l, folder, l.Point))
	}
	return nil
}
