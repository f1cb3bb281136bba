package trace

import (
	"cmp"
	"context"
	"errors"
	"os"
	"runtime"
	"slices"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/router/input"
	"golang.org/x/sync/errgroup"
)

// Options says how exports are read and judged. The zero value uses the
// built-in patterns, a threshold of 0 and no recorded load.
type Options struct {
	Patterns  *ranges.Patterns // nil means the built-in ones
	Phases    []kernel.Rule    // of kernels, before all other evidence
	Rank      map[string]int   // ranks given by hand, by path or base name; "" means every export
	World     int              // ranks that exchange tokens, where a run has several such groups; 0 as recorded
	Threshold float64          // of router.Flagged, as a fraction
	Arm       string           // whose steps count, where the hook's ranges name the arms of steps; see selectArm
	Recorded  Recorded
	// Progress is told how many bytes more have been read, by any of the
	// goroutines that read; all calls together sum to the files' sizes. Nil tells
	// nobody.
	Progress func(bytes int64)
}

// Read reads exports of one run, together, each on its own processor as far as
// there are any, and reduces them to one Trace. The order of paths does not
// matter.
func Read(ctx context.Context, paths []string, o Options) (*Trace, error) {
	if len(paths) == 0 {
		return nil, errors.New("want at least one capture, have none")
	}
	read, err := Open(ctx, paths, o)
	if err != nil {
		return nil, err
	}
	return read.Trace(o)
}

// Exports are read, and become a Trace with one record of counts or another.
type Exports struct{ summaries []*exportSummary }

// Open reads exports of one run, by the patterns, phases and ranks of the options.
func Open(ctx context.Context, paths []string, o Options) (e Exports, err error) {
	e.summaries, err = summarizeAll(ctx, paths, o)
	return e, err
}

// Trace reduces them to one Trace.
func (e Exports) Trace(o Options) (*Trace, error) { return reduce(e.summaries, o) }

// summarizeAll reads paths until one is wrong. It ends what it has begun: the error is of the first path that has one.
func summarizeAll(ctx context.Context, paths []string, o Options) ([]*exportSummary, error) {
	if o.Patterns == nil {
		o.Patterns, _ = ranges.NewPatterns() // only patterns of the user can be wrong
	}
	found, errs := make([][]*exportSummary, len(paths)), make([]error, len(paths))
	group, going := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, path := range paths {
		if errs[i] = going.Err(); errs[i] == nil {
			group.Go(func() error {
				found[i], errs[i] = summarizeFile(ctx, path, o)
				return errs[i]
			})
		}
	}
	_ = group.Wait()
	return slices.Concat(found...), cmp.Or(errs...)
}

// summarizeFile reads a summary, or any capture.
func summarizeFile(ctx context.Context, path string, o Options) ([]*exportSummary, error) {
	if IsSummary(path) {
		if _, ranked := givenRank(o.Rank, path); ranked || len(o.Phases) > 0 {
			return nil, &input.Error{File: path, Expected: "an export, to give it a rank or place its kernels",
				Found: "a summary, whose ranks and phases are fixed", Try: "give --rank and --phase when it is written",
				Err: errRank}
		}
		exports, err := readSummary(path)
		if info, sizeErr := os.Stat(path); sizeErr == nil && o.Progress != nil {
			o.Progress(info.Size())
		}
		return exports, err
	}
	rec, err := capture.Read(ctx, path, o.Progress)
	if err != nil {
		return nil, err
	}
	n := len(rec.Kernels)
	summary, err := summarizeRecording(path, rec, o)
	capture.Collect(n)
	return []*exportSummary{summary}, err
}

// summarizeRecording attributes a recording, which it uses up, and gives its devices
// their ranks. From here on it does not matter what was read.
func summarizeRecording(path string, rec *capture.Recording, o Options) (*exportSummary, error) {
	meta := &rec.Metadata
	elsewhere := func(d capture.Device) bool { return d.Process != rec.Devices[0].Process }
	if slices.ContainsFunc(rec.Devices, elsewhere) || oneRank(path, meta, o.Rank) {
		rec.JoinDevices()
	}
	e := attribute(path, rec, o)
	if len(e.Ranks) == 0 {
		return nil, &input.Error{File: path, Expected: "kernels to analyze",
			Found: "only kernels in ranges that ask to be ignored"}
	}
	e.Arm, e.ArmEvidence = meta.Arm()
	e.World, _ = meta.WorldSize()
	if err := e.numberRanks(rec, o.Rank); err != nil {
		return nil, err
	}
	for _, r := range e.Ranks {
		e.Export.Ranks = append(e.Export.Ranks, r.Rank.Rank)
	}
	return e, nil
}

// Takes reports whether the file at path is of a kind that Read takes, or is so
// plainly meant to be one that Read has the best reason to refuse it: an export, a
// report of nsys, a summary, or a trace of PyTorch's profiler. What cannot be opened
// is judged by its name.
func Takes(path string) bool {
	return IsSummary(path) || capture.Takes(path)
}
