package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moebalance/moebalance/compare/bench/metrics"
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
		Number: number, Session: r.session, State: Running, ExitCode: -1, OthersCPU: router.Undefined(),
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
	s := &starter{host: r.host, dir: r.Spec.Folder, env: append(env, r.markers(l)...), folder: folder, timeout: r.Spec.Timeout}
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

// gpuInterval is the time between looks at the GPUs.
const gpuInterval = 15 * time.Second

// watchGPUs looks at the GPUs beside the launch, so that it costs no time; the
// returned function ends that and returns what was seen; the first look is waited
// for, whatever the command does meanwhile.
func (r *runner) watchGPUs(ctx context.Context) func(warnings *[]string) []GPU {
	if r.host.GPUs == nil {
		return func(*[]string) []GPU { return nil }
	}
	var gpus []GPU
	var failed error
	done := make(chan struct{})
	running, end := context.WithCancel(ctx)
	go func() {
		defer close(done)
		gpus, failed = r.lookAtGPUs(ctx)
		for failed == nil {
			select {
			case <-running.Done():
				return
			case <-time.After(gpuInterval):
			}
			if now, err := r.lookAtGPUs(running); err == nil && len(now) == len(gpus) {
				for i := range now {
					now[i].Processes = gpus[i].Processes
				}
				gpus = now
			}
		}
	}()
	return func(warnings *[]string) []GPU {
		end()
		<-done
		if failed != nil {
			*warnings = append(*warnings, failed.Error())
		}
		return gpus
	}
}

func (r *runner) lookAtGPUs(ctx context.Context) ([]GPU, error) {
	ctx, cancel := context.WithTimeout(ctx, gpuInterval)
	defer cancel()
	gpus, err := r.host.GPUs(ctx)
	if err != nil {
		return nil, err
	}
	ours := marked(r.marker())
	for i := range gpus {
		for j := range gpus[i].Processes {
			p := &gpus[i].Processes[j]
			p.Ours = slices.Contains(ours, p.PID)
		}
	}
	return gpus, nil
}

// read turns the output of an attempt that ran into its result. The attempt
// ends Finished or Failed, and is on disk.
func (r *runner) read(l *Launch, a *Attempt) error {
	err := r.readOutput(l, a)
	a.State = Finished
	if err != nil {
		a.State, a.Error = Failed, err.Error()
	}
	return errors.Join(err, r.save(*l, *a))
}

func (r *runner) readOutput(l *Launch, a *Attempt) error {
	folder := filepath.Join(r.Folder, a.Folder)
	if r.Spec.Counts != "" {
		counted, err := r.host.Counts(r.fill(*l, folder, r.Spec.Counts))
		if err != nil {
			return fmt.Errorf("%w: the expert counts: %w", errUnusable, err)
		}
		a.Counted = &counted
	}
	if l.Kind == Profiled {
		return nil // measured under the profiler: not a result
	}
	result, err := r.parse(*l, folder)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnusable, err)
	}
	if a.Counted == nil && !result.Proof.Claimed { // else the line would prove nothing more
		if a.LinesFound, err = findLines(r.Spec.Treatment.Line, folder); err != nil {
			return err
		}
	}
	name := r.Spec.Metric
	if name == "" {
		name = result.Primary
	}
	m, ok := result.Metric(name)
	switch {
	case !ok:
		return fmt.Errorf("%w: no metric %q in it: want one of %s", errUnusable, name, metricNames(result))
	case !m.Value.Defined():
		return fmt.Errorf("%w: its %s is not a number", errUnusable, name)
	}
	result.Steps = nil // they are in the raw output, and can be many
	a.Result = &result
	return nil
}

// parse reads the report from the file that the spec names, or from stdout, or
// from stderr where stdout holds none.
func (r *runner) parse(l Launch, folder string) (metrics.Result, error) {
	if r.Spec.Output != "" {
		return r.parseFile(r.fill(l, folder, r.Spec.Output))
	}
	result, err := r.parseFile(filepath.Join(folder, stdoutName))
	if err == nil {
		return result, nil
	}
	if other, otherErr := r.parseFile(filepath.Join(folder, stderrName)); otherErr == nil {
		return other, nil
	}
	if errors.Is(err, errEmpty) {
		return result, errors.New("the command printed nothing on stdout: want a benchmark's report there, or the file that holds it (--result)")
	}
	return result, err
}

var errEmpty = errors.New("the result file is empty")

func (r *runner) parseFile(path string) (metrics.Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return metrics.Result{}, fmt.Errorf("the command left no result file: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() == 0 {
		return metrics.Result{}, errEmpty
	}
	return metrics.Parse(bufio.NewReaderSize(f, 1<<16), r.custom)
}

// fill is the path that a template names for a launch.
func (r *runner) fill(l Launch, folder, template string) string {
	out := filepath.Join(folder, outName)
	if abs, err := filepath.Abs(out); err == nil {
		out = abs
	}
	path := place{l, out}.fill([]string{template})[0]
	return inFolder(r.Spec.Folder, path)
}

// inFolder is a path, made absolute from the folder if it is relative.
func inFolder(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

func metricNames(r metrics.Result) string {
	var names []string
	for _, m := range r.Metrics {
		names = append(names, m.Name)
	}
	return strings.Join(names, ", ")
}

// lastLine is the last line of a file that is not blank, cut to a readable length;
// "" if there is none.
func lastLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const reach = 4 << 10
	if info, err := f.Stat(); err == nil && info.Size() > reach {
		if _, err := f.Seek(-reach, io.SeekEnd); err != nil {
			return ""
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, reach))
	if err != nil {
		return ""
	}
	lines := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(lines[i]); line != "" {
			if len(line) > 200 {
				line = strings.ToValidUTF8(line[:200], "") + "…"
			}
			return line
		}
	}
	return ""
}
