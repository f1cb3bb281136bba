package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/launch"
)

// launchesFolder holds one folder per attempt, below the campaign folder; outName is the folder in it for what the
// command writes itself.
const launchesFolder, outName = "launches", "out"

// folderOf is the folder of an attempt, below the campaign's: launches/00003-normal-1.
func folderOf(l Launch, of string, attempt int) string {
	return filepath.Join(launchesFolder, fmt.Sprintf("%05d-%s-%d", l.Position, of, attempt))
}

// launch finishes one place of the order, or fails.
func (r *runner) launch(ctx context.Context, l *Launch) error {
	a, err := r.attempt(ctx, l)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return r.failed(*l, a, err)
}

// failed says which launch failed and where its output is; nil where it did not.
func (r *runner) failed(l Launch, a Attempt, err error) error {
	if err == nil {
		return nil
	}
	of := strings.TrimSuffix(cmp.Or(string(r.Spec.Builds.Called(l.Arm)), "all arms")+", point "+l.Point, ", point ")
	return fmt.Errorf("launch %d (%s): %w; its output is in %s", l.Position, of, err, filepath.Join(r.Folder, a.Folder))
}

// attempt starts the command once and sees it through. The attempt is on disk
// as Started before the command starts, as Ran when it has ended well, and as
// Finished when all that it left is read: a kill between any two of these loses
// nothing and counts nothing twice.
func (r *runner) attempt(ctx context.Context, l *Launch) (Attempt, error) {
	number, of := len(l.Attempts)+1, string(r.Spec.Builds.Called(l.Arm))
	if len(r.Spec.Command.Server) > 0 {
		of = "server" // its client is given a folder, and no arm
	}
	a := Attempt{Number: number, State: Started, ExitCode: -1, Folder: folderOf(*l, of, number)}
	job, err := r.prepare(*l, &a)
	if err != nil {
		return a, err
	}
	a.StartedAt = r.host.Now()
	l.Attempts = append(l.Attempts, a)
	last := &l.Attempts[number-1]
	if err := r.store.save(l.Position, *last); err != nil {
		return *last, err
	}
	r.report(Event{Stage: Starting, Launch: *l, Attempt: *last})

	watched := launch.WatchGPUs(ctx, r.host.GPUs, r.marker())
	var unsaved error
	job.Started = func(g launch.Group) {
		last.Groups = append(last.Groups, g)
		unsaved = errors.Join(unsaved, r.store.save(l.Position, *last))
	}
	outcome, runErr := job.Run(ctx)
	last.DurationNS = max(0, int64(r.host.Now().Sub(last.StartedAt)))
	var unseen error
	if last.GPUs, unseen = watched(); unseen != nil {
		last.Warnings = append(last.Warnings, unseen.Error())
	}
	last.ended(outcome, runErr, ctx.Err() != nil)
	if err := cmp.Or(unsaved, r.store.save(l.Position, *last)); err != nil {
		return *last, err
	}
	if runErr == nil {
		runErr = r.read(l, last)
	}
	r.report(Event{Stage: Ended, Launch: *l, Attempt: *last})
	return *last, runErr
}

// leftBehind is the warning about a command that did not end everything it started.
const leftBehind = "the command left processes behind, which were ended"

// ended fills in how the command of an attempt ended.
func (a *Attempt) ended(outcome launch.Outcome, err error, interrupted bool) {
	a.ExitCode, a.State = outcome.ExitCode, Ran
	if outcome.LeftBehind && !interrupted {
		a.Warnings = append(a.Warnings, leftBehind)
	}
	switch _, lost := errors.AsType[*control.Lost](err); {
	case err == nil:
		return
	case interrupted:
		a.State, err = Interrupted, errors.New("bench was ended")
	case lost:
		a.State = Lost
	default:
		a.State = Failed
	}
	a.Error = err.Error()
}

// openControl is the warning about folders by which others may order routers: the control folder, or one above it.
const openControl = "every user of this machine may change the router of a launch: make the campaign's folders " +
	"yours alone (chmod -R o-w, umask 022)"

// writable reports a folder in which every user may put files.
func writable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&0o002 > 0
}

// prepare fills in the attempt's folder and environment, and returns the job
// to run. It starts nothing.
func (r *runner) prepare(l Launch, a *Attempt) (job launch.Job, err error) {
	folder, err := filepath.Abs(filepath.Join(r.Folder, a.Folder))
	if err != nil {
		return job, err
	}
	out := filepath.Join(folder, outName)
	if err := cmp.Or(os.RemoveAll(folder), os.MkdirAll(out, 0o755)); err != nil { // an attempt was never written down
		return job, err
	}
	env := launch.Environ(r.host.Environ, r.Spec.variables(l.Arm, ""))
	a.Environment = launch.RecordEnvironment(env, r.Spec.own())
	p := r.Spec.placeholdersOf(l, l.Arm, out, l.Point, r.Spec.Design.seed(l.Pair+1))
	each := merged(r.Spec.followed(folder))
	for name, value := range r.Spec.Treatment.Each {
		each[name] = p.Replace(value)
	}
	job = launch.Job{
		Dir: r.Spec.Folder, Env: append(launch.Environ(env, each), r.marker().Environ(l.Position)...), Marker: r.marker(),
		Folder: folder, Own: r.host.Executable, Ready: p.Replace(r.Spec.Command.Ready), Timeout: r.Spec.Timeout,
		Grace: r.host.Grace,
		Ending: func() {
			r.report(Event{Stage: Cleaning, Launch: l, Attempt: *a,
				Text: fmt.Sprintf("ending the command of launch %d and everything it started", l.Position)})
		},
	}
	words, _ := launch.PassOn(p.fill(slices.Concat(r.Spec.Command.engine(), r.Spec.arm(l.Arm).Flags)),
		merged(r.Spec.variables(l.Arm, r.Spec.Treatment.Off), each))
	s := segments{runner: r, launch: l, number: a.Number, folder: folder, words: words}
	if a.Arguments = words; len(r.Spec.Command.Server) > 0 {
		job.Server, a.Arguments = words, slices.Concat(words, p.fill(r.Spec.Command.Normal))
		job.ServerEnv, job.Env = job.Env, slices.Concat(r.host.Environ, r.marker().Environ(l.Position))
	}
	job.Drive, job.Written = s.drive, func() bool { return written(r.countsOf(l, folder)) }
	if r.Spec.Design.Within() {
		job.Drive = s.lead
		shared := filepath.Join(folder, controlFolder)
		err = os.Mkdir(shared, 0o777) // ranks may be another user's
		if slices.ContainsFunc([]string{r.Folder, filepath.Dir(folder), folder, shared}, writable) {
			a.Warnings = append(a.Warnings, openControl)
		}
	}
	return job, err
}
