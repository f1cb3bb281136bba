package nsys

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"

	"zombiezen.com/go/sqlite"
)

// Options says how exports are read and judged. The zero value uses the
// built-in patterns, a threshold of 0 and no recorded load.
type Options struct {
	Patterns  *Patterns      // nil means the built-in ones
	Rank      map[string]int // ranks given by hand, by path or base name; "" means every export
	Threshold float64        // of router.Flagged, as a fraction
	Recorded  Recorded
	Converter Converter // for reports given in place of exports
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
		if _, err := checkThere(path); err != nil {
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

// digestFile reads an export, a trace of PyTorch's profiler, or a summary.
func digestFile(ctx context.Context, path string, o Options) ([]*digest, error) {
	if isSummary(path) {
		if _, ok := flagged(o.Rank, path); ok {
			return nil, fmt.Errorf("%w: %q is a summary, whose ranks are fixed: give them when it is written", ErrRank, path)
		}
		digests, err := readSummary(path)
		if info, sizeErr := os.Stat(path); err == nil && sizeErr == nil && o.Progress != nil {
			o.Progress(info.Size())
		}
		return digests, err
	}
	if isTorchTrace(path) {
		d, err := digestTorch(ctx, path, o)
		if err != nil {
			return nil, err
		}
		return []*digest{d}, nil
	}
	d, err := digestExport(ctx, path, o)
	if err != nil {
		return nil, err
	}
	return []*digest{d}, nil
}

// exportOf is the export at path, or the one that the converter makes of the
// report there.
func (o Options) exportOf(ctx context.Context, path string) (string, error) {
	if info, err := os.Stat(path); err != nil || info.IsDir() || !isReport(path) || o.Converter.Nsys == "" {
		return path, nil // opening it tells what is wrong
	}
	return o.Converter.convert(ctx, path)
}

// openExport opens the export of path and reads what it says about itself.
func openExport(ctx context.Context, path string, o Options) (*database, *probe, error) {
	export, err := o.exportOf(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	db, err := openDatabase(ctx, export)
	if err != nil {
		return nil, nil, err
	}
	db.path = path // a converted report goes by its own name
	p := &probe{}
	err = db.each(ctx, func(_ context.Context, conn *sqlite.Conn) error {
		if err := db.countRows(conn); err != nil {
			return err
		}
		db.meter = newMeter(db, o.Progress)
		return p.read(conn, db)
	})
	return db, p, err
}

// digestExport reads one export, which is shown under the name that the user
// gave.
func digestExport(ctx context.Context, path string, o Options) (*digest, error) {
	db, p, err := openExport(ctx, path, o)
	if err != nil {
		return nil, err
	}
	defer db.meter.finish()
	rec, err := read(ctx, db, forAnalysis)
	if err != nil {
		return nil, err
	}
	if len(rec.kernels) == 0 && len(rec.graphs) == 0 {
		return nil, db.noKernels(p)
	}
	n := len(rec.kernels)
	d, err := newDigest(path, rec, p, o)
	collect(n)
	return d, err
}

// newDigest attributes a recording and gives its units their ranks. From here on
// it does not matter what was read.
func newDigest(path string, rec *recording, p *probe, o Options) (*digest, error) {
	if rec.workers() > 1 || oneRank(path, p, o.Rank) {
		rec.joinDevices()
	}
	a := attribute(rec, o.Patterns)
	d := &digest{names: rec.names, session: p.session, ledgers: a.ledgers()}
	d.classes, d.places = a.classes, a.places
	if len(d.ledgers) == 0 {
		return nil, fmt.Errorf("%q: %w but those in ranges that ask to be ignored", path, ErrNoKernels)
	}
	if err := assignRanks(path, rec, p, d.ledgers, o.Rank); err != nil {
		return nil, err
	}
	d.arm, d.armEvidence = p.arm()
	d.world, _ = p.number(worldVariables)
	d.export = describe(path, rec, p, a, d.ledgers)
	d.settle()
	return d, nil
}

// noKernels says why an export without kernels has none.
func (db *database) noKernels(p *probe) error {
	why := "the capture did not trace CUDA: profile with 'nsys profile --trace cuda,nvtx'"
	switch {
	case p.unsupported != "":
		why = p.unsupported
	case p.slice != "":
		why = "it is a partial export (" + p.slice + ")"
	case db.has(callTable):
		why = "it has API calls but no kernels: the driver or the permissions did not allow CUPTI to record them, or the capture stopped before any ran"
	case len(db.tables) > 0 && !db.has(stringTable):
		why = "it has none of the tables of an nsys export"
	}
	return fmt.Errorf("%q: %w: %s", db.path, ErrNoKernels, why)
}
