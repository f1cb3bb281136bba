package nsys

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/nsys/capture"

	"github.com/moebalance/moebalance/router"
)

// describe is the export's entry in the result, with everything its reader must
// know.
func describe(path string, rec *capture.Recording, a *attribution, ranks []*rankEvents) Export {
	d := exportDescription{
		Export: Export{
			Path: path, NsysVersion: rec.Metadata.NsysVersion, SchemaVersion: rec.Metadata.SchemaVersion,
			Kernels: int64(len(rec.Kernels)), Launches: rec.APICalls, Ranges: int64(a.ranges),
			Ranks: []int{}, GraphMode: "none", GPU: rec.Metadata.GPU, CapturedNS: rec.Metadata.SessionUTC,
			Warnings: []router.Warning{},
		},
		rec: rec, attribution: a,
	}
	for _, r := range ranks {
		d.Ranks = append(d.Ranks, r.rank.Rank)
		d.replayed += r.replayed
	}
	d.describeGraphs()
	d.warnLosses()
	d.warnSteps()
	d.warnSingleLayers()
	d.warnIssues()
	return d.Export
}

// exportDescription collects what there is to say about one export.
type exportDescription struct {
	Export
	rec         *capture.Recording
	attribution *attribution
	replayed    int64 // kernels that a graph replayed
}

func (d *exportDescription) warn(code string, args ...any) {
	d.Warnings = append(d.Warnings, router.Warn(code, filepath.Base(d.Path), args...))
}

// describeGraphs tells the mode in which CUDA graphs were recorded, and what it hides.
func (d *exportDescription) describeGraphs() {
	whole, called := int64(len(d.rec.Graphs)), d.rec.Metadata.GraphLaunches
	switch {
	case whole > 0:
		d.GraphMode = "graph"
		d.warn("graph_mode", "graphs", whole)
		if called > whole {
			d.warn("graph_coverage", "recorded", whole, "launches", called)
		}
	case d.replayed > 0, called > 0 && d.launchedTogether():
		d.GraphMode = "node"
	case called > 0:
		d.warn("graph_lost", "launches", called)
	}
	if n := d.attribution.detached; n > 0 {
		d.warn("graph_capture", "detached", n, "replayed", d.replayed)
	}
}

// launchedTogether reports whether a call launched several kernels, as only that of a
// graph does: PyTorch's profiler records them without their nodes.
func (d *exportDescription) launchedTogether() bool {
	launched := make([]bool, d.attribution.calls)
	for i := range d.rec.Kernels {
		if at := d.rec.Kernels[i].Launch; at >= 0 && launched[at] {
			return true
		} else if at >= 0 {
			launched[at] = true
		}
	}
	return false
}

// warnLosses tells what the capture or the export left out.
func (d *exportDescription) warnLosses() {
	if texts := d.rec.Metadata.Losses; len(texts) > 0 {
		d.warn("loss", "messages", texts)
	}
	if d.rec.Metadata.Partial != "" {
		d.warn("partial_export", "filter", d.rec.Metadata.Partial)
	}
	if a := d.attribution; a.ignored > 0 {
		d.warn("ignored", "ignored", a.ignored, "kernels", d.Kernels, "time_ns", a.ignoredNS)
	}
	if lost, all := d.rec.LostKernels, d.rec.LostKernels+int64(d.attribution.calls); float64(lost) > mostLost*float64(
		all) {
		d.warn("lost_kernels", "lost", lost, "launches", all)
	}
	if n := d.attribution.launchless; n > 0 {
		d.warn("no_launch", "kernels", n, "all", d.Kernels)
	}
}

// warnSteps tells where ranges go on and kernels do not, and how steps are numbered.
func (d *exportDescription) warnSteps() {
	a := d.attribution
	if a.stepsWithout > 0 {
		d.warn(endedEarlyCode, "why", "steps", "without", a.stepsWithout, "steps", a.stepsSeen)
	}
	after, seen := a.labeledAfter, a.labeled
	if seen == 0 {
		after, seen = d.unknownRangesAfter(a.lastWork), len(d.rec.Ranges)
	}
	if float64(after) > mostAfter*float64(seen) {
		d.warn(endedEarlyCode, "why", "ranges", "after", after, "ranges", seen, "time_ns", d.rec.RangesEnd-a.lastWork)
	}
	if a.idleProcesses > 0 {
		d.warn("no_kernels", "processes", a.idleProcesses)
	}
	if a.renumbered {
		d.warn("steps_renumbered")
	}
}

// mostAfter is the share of ranges that begin after the last kernel ended and are not
// worth a warning: programs end with a few.
const mostAfter = 0.01

// singleLayers is the code of the warning that a program runs single layers of its
// model, and not all that a step goes through.
const singleLayers = "single_layers"

// warnSingleLayers tells of a benchmark of single layers.
func (d *exportDescription) warnSingleLayers() {
	// TensorRT-LLM's range has its arguments behind.
	if slices.ContainsFunc(d.rec.RangeNames,
		func(name string) bool { return strings.HasPrefix(name, "layer_wise_benchmarks args ") }) {
		d.warn(singleLayers)
	}
}

// unknownRangesAfter counts the ranges that begin after a time, where no pattern
// knows any range. Programs end with a few of them; a tenth of all is more than
// that, and fewer count as none.
func (d *exportDescription) unknownRangesAfter(at int64) (n int) {
	for _, r := range d.rec.Ranges {
		if r.Start > at {
			n++
		}
	}
	if 10*n <= len(d.rec.Ranges) {
		return 0
	}
	return n
}

// warnIssues tells which rows could not be used as they are.
func (d *exportDescription) warnIssues() {
	t := d.rec.Issues
	for _, w := range []struct {
		code string
		rows int64
	}{
		{"backwards", t.Backwards}, {"out_of_range", t.OutOfRange}, {"correlation_reused", t.ReusedCorrelations},
		{"unended_kernels", t.Unended},
		{"open_ranges", t.OpenRanges}, {"no_process", t.NoPID}, {"other_device", t.OtherDevice},
	} {
		if w.rows > 0 {
			d.warn(w.code, "rows", w.rows)
		}
	}
	if t.Adopted > 0 {
		d.warn("no_process", "why", "adopted", "rows", t.Adopted, "kernels", d.Kernels)
	}
	if t.NoPIDs {
		d.warn("no_process", "why", "none")
	}
}
