package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// launchesFolder holds one folder per attempt, below the campaign folder.
const launchesFolder = "launches"

// The files of an attempt's folder. What the command writes for itself goes to
// the folder "out" beside them.
const (
	stdoutName       = "stdout.log"
	stderrName       = "stderr.log"
	serverStdoutName = "server-stdout.log"
	serverStderrName = "server-stderr.log"
	outName          = "out"
)

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
	return &LaunchError{Launch: l, Attempt: a, Folder: filepath.Join(r.Folder, a.Folder), Err: err}
}

// errUnusable marks output that another attempt would only repeat.
var errUnusable = errors.New("the output cannot be used")

// attempt starts the command once and sees it through. The attempt is on disk
// as Running before the command starts, as Ran when it has ended well, and as
// Finished when its output is read: a kill between any two of these loses
// nothing and counts nothing twice.
func (r *runner) attempt(ctx context.Context, l *Launch) (Attempt, error) {
	number := len(l.Attempts) + 1
	a := Attempt{
		Number: number, Session: r.session, State: Running, ExitCode: -1, OthersCPU: router.Undefined(), Cores: runtime.NumCPU(),
		Folder: filepath.Join(launchesFolder, fmt.Sprintf("%05d-%s-%d", l.Position, l.Arm, number)),
	}
	s, err := r.prepare(*l, &a)
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

	gpus, others, began := r.watchGPUs(ctx), watchCPU(r.host.Now), r.host.Now()
	code, runErr := s.run(ctx)
	last.DurationNS, last.OthersCPU = int64(r.host.Now().Sub(began)), others(s.cpu)
	last.ExitCode, last.Warnings = code, s.warnings
	if s.leftBehind && ctx.Err() == nil {
		last.Warnings = append(last.Warnings, leftBehind)
	}
	last.GPUs = gpus(&last.Warnings)
	if runErr == nil {
		last.State = Ran
		if err := r.save(*l, *last); err != nil {
			return *last, err
		}
		runErr = r.read(l, last)
	} else {
		last.State, last.Error = Failed, runErr.Error()
		if ctx.Err() != nil {
			last.State = Interrupted
		}
		if err := r.save(*l, *last); err != nil {
			return *last, err
		}
	}
	r.report(Event{Stage: Ended, Launch: *l, Attempt: *last})
	return *last, runErr
}

// leftBehind is the warning about a command that did not end everything it
// started.
const leftBehind = "the command left processes behind; they were ended"

// prepare fills in what an attempt is about to do: its folder, words and
// environment. Nothing has been started yet.
func (r *runner) prepare(l Launch, a *Attempt) (*starter, error) {
	folder, err := filepath.Abs(filepath.Join(r.Folder, a.Folder))
	if err != nil {
		return nil, err
	}
	out := filepath.Join(folder, outName)
	if err := os.RemoveAll(folder); err != nil { // of an attempt that was never written down
		return nil, err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	if a.Files, err = r.hashes.files(r.Spec.Folder, r.Spec.Same); err != nil {
		return nil, fmt.Errorf("a file that must stay the same: %w", err)
	}
	env := r.Spec.Treatment.Environ(r.host.Environ, l.Arm)
	a.Environment = recordEnvironment(env, r.Spec.Treatment)
	s := &starter{host: r.host, dir: r.Spec.Folder, env: append(env, r.markers(l)...), mark: r.marker(), folder: folder, timeout: r.Spec.Timeout}
	s.ending = func() {
		r.report(Event{Stage: Cleaning, Launch: l, Attempt: *a, Text: fmt.Sprintf("ending the command of launch %d and all that it started", l.Position)})
	}
	p := place{l, out}
	cmd := r.Spec.Command
	s.ready, s.readyTimeout = p.fill([]string{cmd.Ready})[0], cmd.ReadyTimeout
	engine := p.fill(cmd.engine(l.Arm))
	version := r.version(engine[0])
	engine, warning := carry(engine, r.Spec.Treatment, l.Arm, version)
	if warning != "" {
		s.warnings = append(s.warnings, warning)
	}
	if l.Kind == Profiled {
		engine = r.Spec.Profile.Wrap(engine, out, version)
		s.env = r.Spec.Profile.Environ(s.env)
	}
	engine = slices.DeleteFunc(engine, func(w string) bool { return w == Mark }) // of launches without a profiler
	s.words = engine
	if len(cmd.Server) > 0 {
		s.server, s.words = engine, p.fill(cmd.Of(l.Arm))
	}
	a.Arguments = append(append([]string{}, s.server...), s.words...)
	return s, nil
}
