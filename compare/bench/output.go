package bench

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
)

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
	return r.readReport(*l, a, folder)
}

// readReport reads the report of a launch, and its proof lines where they are the best
// evidence, into its attempt.
func (r *runner) readReport(l Launch, a *Attempt, folder string) error {
	result, err := r.parse(l, folder)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnusable, err)
	}
	a.LinesFound = nil
	if a.Counted == nil && !result.Proof.Claimed { // else the line would prove nothing more
		if a.LinesFound, err = r.Spec.Treatment.findLines(folder); err != nil {
			return err
		}
	}
	if _, err := result.Wanted(r.Spec.Metric); err != nil {
		return fmt.Errorf("%w: %w", errUnusable, err)
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
	result, err := r.parseFile(filepath.Join(folder, launch.Stdout))
	if err == nil {
		return result, nil
	}
	if other, otherErr := r.parseFile(filepath.Join(folder, launch.Stderr)); otherErr == nil {
		return other, nil
	}
	if errors.Is(err, errEmpty) {
		return result, errors.New("the command printed nothing on stdout: want a benchmark report there, or in the file of --result")
	}
	return result, err
}

var errEmpty = errors.New("the result file is empty")

func (r *runner) parseFile(path string) (metrics.Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return metrics.Result{}, fmt.Errorf("the command wrote no result file: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() == 0 {
		return metrics.Result{}, errEmpty
	}
	return metrics.Parse(filepath.Base(path), bufio.NewReaderSize(f, 1<<16), r.custom)
}

// fill is the path that a template names for a launch.
func (r *runner) fill(l Launch, folder, template string) string {
	out := filepath.Join(folder, outName)
	if abs, err := filepath.Abs(out); err == nil {
		out = abs
	}
	path := placeholders{l, out}.fill([]string{template})[0]
	return inFolder(r.Spec.Folder, path)
}

// inFolder is a path, made absolute from the folder if it is relative.
func inFolder(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}
