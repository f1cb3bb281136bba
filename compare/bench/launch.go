package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// launchesFolder holds one folder per attempt, below the campaign folder.
const launchesFolder = "launches"

// outName is the folder in an attempt's folder for what the command writes itself.
const outName = "out"

// launch finishes one place of the order, with as many attempts as the spec
// allows in this session.
func (r *runner) launch(ctx context.Context, l *Launch) error {
	for try := 0; ; try++ {
		a, err := r.attempt(ctx, l)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case try >= r.Spec.Retries || errors.Is(err, errUnusable):
			return r.failed(*l, a, err)
		}
	}
}

func (r *runner) failed(l Launch, a Attempt, err error) *LaunchError {
	l.Arm = r.Spec.Builds.Called(l.Arm)
	return &LaunchError{Launch: l, Folder: filepath.Join(r.Folder, a.Folder), Err: err}
}

// errUnusable marks output that another attempt would only repeat.
var errUnusable = errors.New("unusable output")

// attempt starts the command once and sees it through. The attempt is on disk
// as Running before the command starts, as Ran when it has ended well, and as
// Finished when its output is read: a kill between any two of these loses
// nothing and counts nothing twice.
func (r *runner) attempt(ctx context.Context, l *Launch) (Attempt, error) {
	number := len(l.Attempts) + 1
	a := Attempt{
		Number: number, Session: r.session, State: Running, ExitCode: -1, OthersCPU: router.Undefined(),
		Cores:  runtime.NumCPU(),
		Folder: filepath.Join(launchesFolder, r.folderName(*l, number)),
	}
	job, err := r.prepare(*l, &a)
	if err != nil {
		return a, err
	}
	a.StartedAt = r.host.Now()
	l.Attempts = append(l.Attempts, a)
	last := &l.Attempts[number-1]
	if err := r.save(*l, *last); err != nil {
		return *last, err
	}
	r.report(Event{Stage: Starting, Launch: *l, Attempt: *last})

	gpus, others, began := launch.WatchGPUs(ctx, r.host.GPUs, r.marker()), launch.WatchCPU(r.host.Now), r.host.Now()
	var unsaved error
	job.Started = func(g launch.Group) {
		last.Groups = append(last.Groups, g)
		unsaved = errors.Join(unsaved, r.save(*l, *last))
	}
	outcome, runErr := job.Run(ctx)
	if unsaved != nil {
		return *last, unsaved
	}
	last.DurationNS, last.OthersCPU = max(0, int64(r.host.Now().Sub(began))), others(outcome.CPU)
	var unseen error
	if last.GPUs, unseen = gpus.End(); unseen != nil {
		last.Warnings = append(last.Warnings, unseen.Error())
	}
	r.ended(last, outcome, job, runErr, ctx.Err() != nil)
	if err := r.save(*l, *last); err != nil {
		return *last, err
	}
	if runErr == nil {
		runErr = r.read(l, last)
	}
	r.report(Event{Stage: Ended, Launch: *l, Attempt: *last})
	return *last, runErr
}

// ended fills in how the command of an attempt ended, and what it left.
func (r *runner) ended(last *Attempt, outcome launch.Outcome, job launch.Job, runErr error, interrupted bool) {
	last.ExitCode = outcome.ExitCode
	last.OwnVariables = launch.OwnVariables(outcome.Environ, job.Env, r.ID, job.Folder)
	if text := r.Spec.Treatment.undone(last.OwnVariables); text != "" {
		last.Warnings = append(last.Warnings, text)
	}
	if outcome.LeftBehind && !interrupted {
		last.Warnings = append(last.Warnings, leftBehind)
	}
	if names := outcome.Survivors; len(names) > 0 {
		last.Warnings = append(last.Warnings, fmt.Sprintf("could not end %s: end it before the next launch",
			strings.Join(names, ", ")))
	}
	switch {
	case runErr == nil:
		last.State = Ran
	case interrupted:
		last.State, last.Error = Interrupted, runErr.Error()
	default:
		last.State, last.Error = Failed, runErr.Error()
	}
}

// folderName is that of an attempt's folder, by its position. Only the names of our own
// arms are in it, which 'compare' knows.
func (r *runner) folderName(l Launch, attempt int) string {
	if slices.Contains(gain.Arms[:], l.Arm) && !r.Spec.Builds.Named() {
		return fmt.Sprintf("%05d-%s-%d", l.Position, l.Arm, attempt)
	}
	return fmt.Sprintf("%05d-%d", l.Position, attempt)
}

// leftBehind is the warning about a command that did not end everything it started.
const leftBehind = "the command left processes behind, which were ended"

// prepare fills in the attempt's folder, files and environment, and returns the job
// to run. It starts nothing.
func (r *runner) prepare(l Launch, a *Attempt) (job launch.Job, err error) {
	folder, err := filepath.Abs(filepath.Join(r.Folder, a.Folder))
	if err != nil {
		return job, err
	}
	out := filepath.Join(folder, outName)
	if err := os.RemoveAll(folder); err != nil { // of an attempt that was never written down
		return job, err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return job, err
	}
	made, err := os.Stat(out)
	if err != nil {
		return job, err
	}
	a.Made = made.ModTime()
	if a.Files, err = r.hashes.Files(r.Spec.Folder, r.Spec.Same); err != nil {
		return job, fmt.Errorf("--same: %w", err)
	}
	env := r.Spec.environ(r.host.Environ, l.Arm)
	a.Environment = launch.RecordEnvironment(env, r.Spec.armVariables())
	cmd, p := r.Spec.Command, r.Spec.placeholders(l, out, l.Point)
	job = launch.Job{
		Runs: []launch.Run{{Words: p.fill(cmd.Normal), Folder: folder}}, Server: p.fill(cmd.Server),
		Dir: r.Spec.Folder,
		Env: append(env, r.marker().Environ(l.Position)...), Marker: r.marker(), Folder: folder, Own: r.host.Executable,
		Ready: p.fill([]string{cmd.Ready})[0], ReadyTimeout: cmd.ReadyTimeout, Timeout: r.Spec.Timeout,
		Grace: r.host.Grace,
		Ending: func() {
			r.report(Event{Stage: Cleaning, Launch: l, Attempt: *a,
				Text: fmt.Sprintf("ending the command of launch %d and everything it started", l.Position)})
		},
	}
	r.arm(l, a, &job, p)
	a.Arguments = slices.Concat(job.Server, job.Runs[0].Words)
	switch {
	case r.Spec.Design.Within():
		err = r.follow(l, a, &job)
	case r.Spec.perClient():
		job.Runs, err = r.clients(l, *a, folder)
	}
	return job, err
}

// arm gives the engine of a job the flags and variables of its arm.
func (r *runner) arm(l Launch, a *Attempt, job *launch.Job, p placeholders) {
	engine := &job.Runs[0].Words
	if len(job.Server) > 0 {
		engine = &job.Server
	}
	own := r.Spec.arm(l.Arm)
	*engine = append(*engine, p.fill(own.Flags)...)
	each := launch.Variables(r.Spec.Treatment.Each)
	for i := range each {
		each[i].Value = p.fill([]string{each[i].Value})[0]
	}
	each = append(each, r.Spec.followed(job.Folder)...)
	job.Env = launch.Environ(job.Env, each)
	version := launch.LauncherVersion((*engine)[0])
	var warning string
	if *engine, warning = launch.PassOn(*engine, slices.Concat(r.Spec.Treatment.variables(l.Arm, r.Spec.Treatment.Off),
		each, launch.Variables(own.Env)), version); warning != "" {
		a.Warnings = append(a.Warnings, warning)
	}
	// of launches without a profiler
	*engine = slices.DeleteFunc(*engine, func(w string) bool { return w == launch.ProfilerHere })
}
