package bench

import (
	"bufio"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/router/input"
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
	if r.Spec.Design.Within() {
		return r.readWithin(*l, a, folder)
	}
	if err := r.readCounts(*l, a, folder); err != nil {
		return err
	}
	return r.readReport(*l, a, folder)
}

// readCounts reads the expert loads that a launch recorded. Those that the treatment
// promised and the user did not ask for may be missing.
func (r *runner) readCounts(l Launch, a *Attempt, folder string) error {
	filled := r.countsOf(l, folder, l.Point)
	if filled == "" {
		return nil
	}
	_, placement := a.placement(r.Spec.Folder)
	counted, err := r.host.Counts(filled, placement)
	if err == nil && !counted.RankMaxOverMean.Defined() && !counted.ExpertMaxOverMean.Defined() {
		err = fmt.Errorf("%s holds no load: record the measured requests", counted.Source)
	}
	switch {
	case err == nil:
		counted.Foreign, counted.Recorded = evidence.Foreign(filled, filepath.Join(folder, outName), a.Made),
			evidence.RecordedShare(filled)
		a.Counted = &counted
	case r.Spec.Counts != "":
		return fmt.Errorf("%w: the expert counts: %w", errUnusable, err)
	default:
		a.warnOfCounts(err, filled)
	}
	return nil
}

// warnOfCounts says that there are none. The same words for every launch are shown once.
func (a *Attempt) warnOfCounts(err error, path string) {
	text := strings.ReplaceAll(err.Error(), path, filepath.Join(outName, filepath.Base(path))+" of the launch")
	a.Warnings = append(a.Warnings, "no expert counts, so balance is claimed at most: "+text)
}

// countsOf is where a launch records its expert counts; empty where it records none. A server
// that runs already records them where the user says.
func (r *runner) countsOf(l Launch, folder, point string) string {
	path, records := r.Spec.Counts, r.Spec.Treatment.Records
	if path == "" && records != "" && r.Spec.Control == "" {
		path = "{out}/" + records
	}
	if path == "" {
		return ""
	}
	return r.fill(l, folder, path, point)
}

// readReport reads the report of a launch, and its proof lines where they are the best
// evidence, into its attempt. Points are read from the output of the client's run of their own.
func (r *runner) readReport(l Launch, a *Attempt, folder string) (err error) {
	switch {
	case r.Spec.Design.Within():
		return r.rereadWithin(l, a, folder)
	case r.Spec.perClient():
		err = r.rereadPoints(l, a)
	default:
		var result metrics.Result
		result, err = r.parse(r.outputOf(l, folder, l.Point))
		a.Result = &result
	}
	if err != nil {
		a.Result = nil
		return fmt.Errorf("%w: %w", errUnusable, err)
	}
	a.IterationRows = len(r.iterationLog(l, *a))
	if r.Spec.IterationLog != "" && a.IterationRows == 0 {
		a.Warnings = append(a.Warnings, "no iteration rows in the file of --iteration-log")
	}
	a.LinesFound = nil
	if a.Counted != nil || a.pointAttempts()[0].Result.Proof.Claimed { // the line would prove nothing more
		return nil
	}
	a.LinesFound, err = r.Spec.Treatment.findLines(folder)
	return err
}

// rereadPoints reads the output of the client's runs again, which judging by another metric
// needs.
func (r *runner) rereadPoints(l Launch, a *Attempt) error {
	for i, p := range a.Points {
		result, err := r.parse(r.outputOf(l, filepath.Join(r.Folder, a.Folder, "point-"+p.Value), p.Value))
		if err != nil {
			return fmt.Errorf("%s %s: %w", r.Spec.Points.Name, p.Value, err)
		}
		a.Points[i].Result = &result
	}
	return nil
}

// outputOf are the files that may hold the report of a launch at a point: that of the
// spec, or stdout, or stderr where stdout holds none.
func (r *runner) outputOf(l Launch, folder, point string) []string {
	if r.Spec.Output != "" {
		return []string{r.fill(l, folder, r.Spec.Output, point)}
	}
	return []string{filepath.Join(folder, launch.Stdout), filepath.Join(folder, launch.Stderr)}
}

// parse reads the report from the first of the files that holds one.
func (r *runner) parse(paths []string) (metrics.Result, error) {
	result, err := parseFile(paths[0], r.custom)
	if err != nil && len(paths) > 1 {
		if other, otherErr := parseFile(paths[1], r.custom); otherErr == nil {
			result, err = other, nil
		}
	}
	switch {
	case errors.Is(err, errEmpty) && len(paths) > 1:
		return result, errors.New(
			"the command printed nothing on stdout: want a benchmark report there, or in the file of --result")
	case err != nil:
		return result, err
	}
	return result, r.usable(&result)
}

// usable reports what is wrong with the value that is compared, and drops what need not be
// kept.
func (r *runner) usable(result *metrics.Result) error {
	_, err := result.Wanted(r.Spec.Metric)
	result.Steps = nil // they are in the raw output, and can be many
	return err
}

var errEmpty = errors.New("the result file is empty")

func parseFile(path string, custom []metrics.Custom) (metrics.Result, error) {
	f, err := input.Open(path)
	if err != nil {
		return metrics.Result{}, fmt.Errorf("the command wrote no result file: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() == 0 {
		return metrics.Result{}, errEmpty
	}
	return metrics.Parse(filepath.Base(path), bufio.NewReaderSize(f, 1<<16), custom)
}

// fill is the path that a template names for a launch.
func (r *runner) fill(l Launch, folder, template, point string) string {
	out := filepath.Join(folder, outName)
	if abs, err := filepath.Abs(out); err == nil {
		out = abs
	}
	path := r.Spec.placeholders(l, out, point).fill([]string{template})[0]
	return evidence.InFolder(r.Spec.Folder, path)
}
