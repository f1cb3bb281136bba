package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/router/quantity"
)

// Host is the machine that a campaign runs on, handed in by the caller.
type Host struct {
	Environ    []string // of the commands, before the treatment
	Executable string   // started for launch.OwnName where no such program is on the path

	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error // between looks at the ranks of a launch that holds all arms
	// GPUs is asked at the start of every launch, beside it; nil records none.
	GPUs  func(context.Context) ([]launch.GPU, error)
	Grace launch.Grace
	// Counts reads the expert loads that a launch recorded at a path; needed if the spec
	// names one. Where they do not say where the experts are, a placement file of the
	// command may; empty for none.
	Counts func(path, placement string) (proof.LoadProof, error)
	// Accept looks at the campaign once its first pair is finished; an error ends
	// Run before more time is spent on arms that cannot be compared. May be nil.
	Accept func(*Campaign) error
	Report func(Event) // told what happens; nil tells nobody
}

// Stage is a moment in a launch.
type Stage string

// The stages of launches.
const (
	Starting Stage = "starting"
	Measured Stage = "measured" // one of the points, or blocks, of a launch that goes on
	Ended    Stage = "ended"    // finished, failed or interrupted
	Cleaning Stage = "cleaning" // ending processes
)

// Event tells of one step of a campaign.
type Event struct {
	Stage   Stage
	Launch  Launch  // a copy; its last attempt is Attempt
	Attempt Attempt // zero before Starting
	Done    int     // launches finished
	Left    int     // launches still to be done
	Text    string  // where there is more to say
}

// Resolve finds the program of every command of the spec, so that a name that
// is mistyped is found before a campaign exists.
func (h Host) Resolve(s Spec) error {
	for _, arm := range s.arms() {
		normal, server := s.Command.Normal, s.Command.Server
		for _, program := range slices.Concat(normal[:min(1, len(normal))], server[:min(1, len(server))]) {
			program = strings.ReplaceAll(program, "{arm}", string(s.Builds.Called(arm)))
			if _, err := launch.FindProgram(program, s.Folder, h.Executable); err != nil {
				return err
			}
		}
	}
	return nil
}

// Run continues the campaign until every launch is done, a launch fails for good, or ctx
// ends: then the running command is ended with everything it started, and the error is the cause of ctx.
// Finished launches are kept; Run can be called again.
func (c *Campaign) Run(ctx context.Context, h Host) error {
	custom, err := c.Spec.custom()
	if err != nil {
		return err
	}
	r := runner{c, h, custom}
	if err := r.recover(); err != nil {
		return err
	}
	for i := range c.Launches {
		if _, done := c.Launches[i].Done(); done {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := r.accept(); err != nil {
			return err
		}
		if err := r.launch(ctx, &c.Launches[i]); err != nil {
			return err
		}
	}
	for _, l := range c.Launches { // no client is left that must not be told its arm
		if a, _ := l.Done(); len(c.Spec.Command.Server) > 0 && l.Arm != "" {
			name := folderOf(l, string(c.Spec.Builds.Called(l.Arm)), a.Number)
			_ = os.Symlink(filepath.Base(a.Folder), filepath.Join(c.Folder, name)) // for people and compare
		}
	}
	return nil
}

// runner is one call of Run.
type runner struct {
	*Campaign
	host   Host
	custom []metrics.Custom
}

func (r *runner) report(e Event) {
	if r.host.Report != nil {
		e.Done, e.Left = r.Finished(), r.Left()
		e.Launch.Arm = r.Spec.Builds.Called(e.Launch.Arm)
		r.host.Report(e)
	}
}

// recover cleans up after a session that was killed: its processes are ended, a
// launch that had already ended is read, and one that had not is marked as interrupted
// and will be started again.
func (r *runner) recover() error {
	for i := range r.Launches {
		l := &r.Launches[i]
		if len(l.Attempts) == 0 {
			continue
		}
		last := &l.Attempts[len(l.Attempts)-1]
		switch last.State {
		case Started:
			r.report(Event{Stage: Cleaning, Launch: *l, Attempt: *last,
				Text: "ending the processes of an interrupted run"})
			ended := launch.End(r.marker(), last.Groups, r.host.Grace)
			last.State, last.ExitCode = Interrupted, -1
			last.Error = fmt.Sprintf("bench was killed while the command ran (%s still running)",
				quantity.Count(ended, "process"))
			if err := r.store.save(l.Position, *last); err != nil {
				return err
			}
		case Ran:
			if err := r.read(l, last); err != nil {
				return r.failed(*l, *last, err)
			}
		}
	}
	return nil
}

// marker is what the campaign's processes carry.
func (r *runner) marker() launch.Marker { return launch.NewMarker(r.ID) }

// accept asks, after the first pair and before the second, whether to go on. A plan puts the launches of a pair side
// by side.
func (r *runner) accept() error {
	first := len(r.Spec.arms())
	if r.Spec.Design.Within() {
		first = 1
	}
	if r.host.Accept == nil || r.Finished() != first {
		return nil
	}
	return r.host.Accept(r.Campaign)
}
