package nsys

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
	// Progress is told the size of each file when it has been read, from
	// whichever goroutine read it; nil tells nobody.
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
	found, errs := make([][]*digest, len(paths)), make([]error, len(paths))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for i, path := range paths {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			found[i], errs[i] = digestFile(ctx, path, o)
			if info, err := os.Stat(path); err == nil && o.Progress != nil {
				o.Progress(info.Size())
			}
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

// digestFile reads an export or the summary of some.
func digestFile(ctx context.Context, path string, o Options) ([]*digest, error) {
	if isSummary(path) {
		return readSummary(path)
	}
	export := path
	if info, err := os.Stat(path); err == nil && !info.IsDir() && isReport(path) && o.Converter.Nsys != "" {
		if export, err = o.Converter.convert(ctx, path); err != nil {
			return nil, err
		}
	}
	d, err := digestExport(ctx, export, path, o)
	if err != nil {
		return nil, err
	}
	return []*digest{d}, nil
}

// digestExport opens, probes, reads and attributes one export, which is shown
// under the name that the user gave.
func digestExport(ctx context.Context, export, path string, o Options) (*digest, error) {
	db, err := openDatabase(ctx, export)
	if err != nil {
		return nil, err
	}
	var p probe
	if err := db.each(ctx, func(conn *sqlite.Conn) error { return p.read(conn, db) }); err != nil {
		return nil, err
	}
	if !db.has(kernelTable) && !db.has(graphTable) {
		return nil, db.noKernels(&p)
	}
	rec, err := read(ctx, db, forAnalysis)
	if err != nil {
		return nil, err
	}
	if len(rec.kernels) == 0 && len(rec.graphs) == 0 {
		return nil, db.noKernels(&p)
	}
	patterns := o.Patterns
	if patterns == nil {
		if patterns, err = NewPatterns(); err != nil {
			return nil, err
		}
	}
	a := attribute(rec, patterns)
	d := &digest{names: rec.names, session: p.session}
	d.ledgers = a.ledgers()
	d.places = a.places
	if err := assignRanks(path, rec, &p, d.ledgers, o.Rank); err != nil {
		return nil, err
	}
	d.arm, d.armEvidence = p.arm()
	d.world, _ = p.number(worldVariables)
	d.export = describe(path, rec, &p, a, d.ledgers)
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

// describe is the export's entry in the result, with everything its reader must
// know.
func describe(path string, rec *recording, p *probe, a *attribution, ledgers []*ledger) Export {
	e := Export{
		Path: path, NsysVersion: p.nsysVersion, SchemaVersion: p.schemaVersion,
		Kernels: int64(len(rec.kernels)), Launches: rec.launches, Ranges: int64(len(rec.ranges)),
		Ranks: []int{}, GraphMode: "none", Warnings: []Warning{},
	}
	warn := func(code, format string, args ...any) {
		e.Warnings = append(e.Warnings, Warning{Code: code, Subject: filepath.Base(path), Text: fmt.Sprintf(format, args...)})
	}
	var replayed, launchless int64
	for _, l := range ledgers {
		e.Ranks = append(e.Ranks, l.rank.Rank)
		replayed += l.replayed
	}
	for _, k := range rec.kernels {
		if k.call < 0 {
			launchless++
		}
	}
	if replayed > 0 {
		e.GraphMode = "node"
	}
	if len(rec.graphs) > 0 {
		e.GraphMode = "graph"
		warn("graph_mode", "%d graph launches were recorded whole: the kernels and phases inside are hidden, and none of their time is counted; capture with --cuda-graph-trace=node to see them", len(rec.graphs))
		if n := int64(len(rec.graphs)); p.graphLaunches > n {
			warn("graph_coverage", "%d of %d graph launches have a time: the others were lost", n, p.graphLaunches)
		}
	} else if p.graphLaunches > 0 && replayed == 0 {
		warn("graph_lost", "%d graph launches were called, but nothing of what they ran was recorded with its graph node", p.graphLaunches)
	}
	for _, text := range p.losses {
		warn("loss", "the profiler says: %s", text)
	}
	if p.slice != "" {
		warn("partial_export", "a partial export: %s", p.slice)
	}
	if launchless > 0 {
		warn("no_launch", "%d of %d kernels have no launch recorded: they belong to no range", launchless, len(rec.kernels))
	}
	if a.orphans > 0 {
		warn("graph_capture", "%d of %d replayed kernels come from graphs captured outside the recording: their layer is unknown", a.orphans, replayed)
	}
	if a.stepsWithout > 0 {
		warn("ended_early", "%d of %d steps have ranges but no kernels: the capture ended early or lost them, and these steps count nowhere", a.stepsWithout, a.stepsSeen)
	}
	if a.marksAfter > 0 {
		warn("ended_early", "ranges go on for %.1f ms after the last kernel ended (%d of %d named ranges begin then): the capture of kernels ended early", float64(rec.rangesEnd-a.lastWork)/1e6, a.marksAfter, a.marksSeen)
	}
	if a.renumbered {
		warn("steps_renumbered", "steps without a number, or with one that repeats, are numbered in the order in which they began")
	}
	t := rec.trouble
	for _, w := range []struct {
		n          int64
		code, text string
	}{
		{t.backwards, "backwards", "%d events end before they begin: left out"},
		{t.outOfRange, "out_of_range", "%d events have impossible times (beyond 104 days): left out"},
		{t.reused, "correlation_reused", "%d calls carry the correlation id of another call: each kernel was given the last call before it"},
		{t.openRanges, "open_ranges", "%d ranges were never closed: taken to last to the capture's end"},
	} {
		if w.n > 0 {
			warn(w.code, w.text, w.n)
		}
	}
	if t.bare {
		warn("no_process", "kernels record no process: they were joined to calls by correlation id alone")
	}
	return e
}
