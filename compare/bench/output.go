package bench

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/router/input"
)

// read adds the expert counts and the proof lines that an attempt left. The attempt ends Finished or Failed,
// and is on disk.
func (r *runner) read(l *Launch, a *Attempt) error {
	folder := filepath.Join(r.Folder, a.Folder)
	err := r.readCounts(*l, a, folder)
	if path := r.countsOf(*l, folder); err != nil && r.Spec.Counts == "" { // promised by the treatment, not asked for
		text := strings.ReplaceAll(err.Error(), path, filepath.Join(outName, filepath.Base(path))+" of the launch")
		a.Warnings, err = append(a.Warnings, "no expert counts, so balance is claimed at most: "+text), nil
	} else if err != nil {
		err = fmt.Errorf("the expert counts: %w", err)
	}
	a.State = Finished
	if err = cmp.Or(err, r.readLines(a, folder)); err != nil {
		a.State, a.Error = Failed, err.Error()
	}
	return errors.Join(err, r.store.save(l.Position, *a))
}

// readCounts reads the expert counts of each order, as far as they are written: within a launch an engine
// writes the counts of an order when the next one comes, or when it ends. The error says why there are none at all.
func (r *runner) readCounts(l Launch, a *Attempt, folder string) (err error) {
	path := r.countsOf(l, folder)
	if path == "" || r.host.Counts == nil {
		return nil
	}
	_, placement := a.placement(r.Spec.Folder)
	read := false
	for i := range a.Orders {
		o, of := &a.Orders[i], path
		if o.Sequence > 0 {
			of = filepath.Join(path, fmt.Sprintf("sequence%d", o.Sequence))
		}
		counted, failed := r.host.Counts(of, placement)
		if failed != nil {
			err = cmp.Or(err, failed)
			continue
		}
		counted.Recorded = evidence.RecordedShare(of)
		o.Counted, read = &counted, true
	}
	if read {
		return nil
	}
	return err
}

// countsOf is where a launch records its expert counts; empty where it records none.
func (r *runner) countsOf(l Launch, folder string) string {
	path := r.Spec.Counts
	if path == "" && r.Spec.Treatment.Records != "" {
		path = "{out}/" + r.Spec.Treatment.Records
	}
	out, err := filepath.Abs(filepath.Join(folder, outName))
	if path == "" || err != nil {
		return ""
	}
	p := r.Spec.placeholdersOf(l, l.Arm, out, l.Point, r.Spec.Design.seed(l.Pair+1))
	return evidence.InFolder(r.Spec.Folder, p.Replace(path))
}

// written reports whether no rank of the hook holds the lock that lies beside its counts while some are in no file:
// vLLM's server kills its engine at once, with what that has not written.
func written(counts string) bool {
	locks, _ := filepath.Glob(filepath.Join(counts, ".unwritten.*"))
	return !slices.ContainsFunc(locks, func(path string) bool {
		lock := flock.New(path, flock.SetFlag(os.O_RDWR)) // which makes none where the hook has just removed it
		defer lock.Close()
		free, err := lock.TryLock()
		return err == nil && !free
	})
}

// readLines reads the proof lines of a launch of one arm, where nothing proves more.
func (r *runner) readLines(a *Attempt, folder string) (err error) {
	a.LinesFound = nil
	if r.Spec.Design.Within() || a.Orders[0].Counted != nil || a.Segments[0].Result.Proof.Claimed {
		return nil
	}
	a.LinesFound, err = r.Spec.Treatment.findLines(folder)
	return err
}

// outputOf are the files that may hold the report of a run, whose command p filled: the spec's file, or
// stdout, or stderr where stdout holds none.
func (r *runner) outputOf(folder string, p placeholders) []string {
	if r.Spec.Output != "" {
		return []string{evidence.InFolder(r.Spec.Folder, p.Replace(r.Spec.Output))}
	}
	return []string{filepath.Join(folder, launch.Stdout), filepath.Join(folder, launch.Stderr)}
}

// parse reads the report from the first of the files that holds one.
func (r *runner) parse(paths []string) (result metrics.Result, err error) {
	result, err = parseFile(paths[0], r.custom)
	for i := 1; err != nil && i < len(paths); i++ {
		if other, failed := parseFile(paths[i], r.custom); failed == nil { // else the error is the first one's
			result, err = other, nil
		}
	}
	if errors.Is(err, errEmpty) && len(paths) > 1 {
		return result, errors.New(
			"the command printed nothing on stdout: want a benchmark report there, or in the file of --result")
	}
	if err == nil {
		_, err = result.Wanted(r.Spec.Metric)
	}
	return result, err
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
