package nsys

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/moebalance/moebalance/compare/nsys/capture"
)

// Options says how exports are read and judged. The zero value uses the
// built-in patterns, a threshold of 0 and no recorded load.
type Options struct {
	Patterns  *Patterns      // nil means the built-in ones
	Rank      map[string]int // ranks given by hand, by path or base name; "" means every export
	Threshold float64        // of router.Flagged, as a fraction
	Recorded  Recorded
	Converter capture.Converter // for reports given in place of exports
	// Progress is told how many bytes more have been read, by any of the
	// goroutines that read; all calls together sum to the files' sizes. Nil tells
	// nobody.
	Progress func(bytes int64)
}

// Read reads exports of one run, together, each on its own processor as far as
// there are any, and reduces them to one Trace. The order of paths does not
// matter.
func Read(ctx context.Context, paths []string, o Options) (*Trace, error) {
	digests, err := digestAll(ctx, paths, o)
	if err != nil {
		return nil, err
	}
	return reduce(digests, o)
}

// digestAll reads every path; the error is that of the first path that has one.
func digestAll(ctx context.Context, paths []string, o Options) ([]*digest, error) {
	if o.Patterns == nil {
		var err error
		if o.Patterns, err = NewPatterns(); err != nil {
			return nil, err
		}
	}
	for _, path := range paths {
		if _, err := capture.CheckExists(path); err != nil {
			return nil, err
		}
	}
	found, errs := make([][]*digest, len(paths)), make([]error, len(paths))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for i, path := range paths {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			found[i], errs[i] = digestFile(ctx, path, o)
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return slices.Concat(found...), nil
}

// digestFile reads a summary, or any capture.
func digestFile(ctx context.Context, path string, o Options) ([]*digest, error) {
	if IsSummary(path) {
		if _, ok := flagged(o.Rank, path); ok {
			return nil, fmt.Errorf("%w: %q is a summary, whose ranks are fixed: give them when it is written", ErrRank, path)
		}
		digests, err := readSummary(path)
		if info, sizeErr := os.Stat(path); err == nil && sizeErr == nil && o.Progress != nil {
			o.Progress(info.Size())
		}
		return digests, err
	}
	rec, err := capture.Read(ctx, path, capture.Options{Converter: o.Converter, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	if len(rec.Kernels) == 0 && len(rec.Graphs) == 0 {
		return nil, rec.NoKernels()
	}
	n := len(rec.Kernels)
	d, err := newDigest(path, rec, o)
	capture.Collect(n)
	if err != nil {
		return nil, err
	}
	return []*digest{d}, nil
}

// newDigest attributes a recording and gives its units their ranks. From here on
// it does not matter what was read.
func newDigest(path string, rec *capture.Recording, o Options) (*digest, error) {
	p := &rec.Metadata
	if workers(rec) > 1 || oneRank(path, p, o.Rank) {
		joinDevices(rec)
	}
	a := attribute(rec, o.Patterns)
	d := &digest{names: rec.KernelNames, session: p.SessionUTC, ledgers: a.ledgers()}
	d.classes, d.places = a.classes, a.places
	if len(d.ledgers) == 0 {
		return nil, fmt.Errorf("%q: %w but those in ranges that ask to be ignored", path, capture.ErrNoKernels)
	}
	if err := assignRanks(path, rec, p, d.ledgers, o.Rank); err != nil {
		return nil, err
	}
	d.arm, d.armEvidence = armOf(p)
	d.world, _ = p.WorldSize()
	d.export = describe(path, rec, p, a, d.ledgers)
	d.settle()
	return d, nil
}

// Takes reports whether the file at path is of a kind that Read takes, or is so
// plainly meant to be one that Read has the best reason to refuse it: an export, a
// report of nsys, a summary, or a trace of PyTorch's profiler. What cannot be opened
// is judged by its name.
func Takes(path string) bool {
	return IsSummary(path) || capture.Takes(path)
}
