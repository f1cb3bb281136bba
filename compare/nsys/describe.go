package nsys

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/nsys/capture"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// describe is the export's entry in the result, with everything its reader must
// know.
func describe(path string, rec *capture.Recording, a *attribution, ranks []*rankEvents) Export {
	d := exportDescription{
		Export: Export{
			Path: path, NsysVersion: rec.Metadata.NsysVersion, SchemaVersion: rec.Metadata.SchemaVersion,
			Kernels: int64(len(rec.Kernels)), Launches: rec.APICalls, Ranges: int64(a.ranges),
			Ranks: []int{}, GraphMode: "none", GPU: rec.Metadata.GPU, CapturedNS: rec.Metadata.SessionUTC, Warnings: []router.Warning{},
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

func (d *exportDescription) warn(code, format string, args ...any) {
	d.Warnings = append(d.Warnings, router.Warning{Code: code, Subject: filepath.Base(d.Path), Text: fmt.Sprintf(format, args...)})
}

// describeGraphs tells the mode in which CUDA graphs were recorded, and what it hides.
func (d *exportDescription) describeGraphs() {
	whole, called := int64(len(d.rec.Graphs)), d.rec.Metadata.GraphLaunches
	switch {
	case whole > 0:
		d.GraphMode = "graph"
		d.warn("graph_mode", "%s recorded as a whole: the time of the kernels inside is excluded; capture with --cuda-graph-trace=node to see them", quantity.Count(whole, "graph launch"))
		if called > whole {
			d.warn("graph_coverage", "%d of %s have a recorded time: the others were lost", whole, quantity.Count(called, "graph launch"))
		}
	case d.replayed > 0, called > 0 && d.launchedTogether():
		d.GraphMode = "node"
	case called > 0:
		d.warn("graph_lost", "%s without any recorded graph node: the kernels of graphs were lost, or are counted without a layer", quantity.Count(called, "graph launch"))
	}
	if n := d.attribution.detached; n > 0 {
		d.warn("graph_capture", "%d of %s belong to graphs captured before the recording began: their layer is unknown; start the capture before CUDA graphs are captured", n, quantity.Count(d.replayed, "replayed kernel"))
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
		d.warn("loss", "the profiler says: %s", strings.Join(texts, "; "))
	}
	if d.rec.Metadata.Partial != "" {
		d.warn("partial_export", "a partial export (%s): times outside it are excluded", d.rec.Metadata.Partial)
	}
	if a := d.attribution; a.ignored > 0 {
		d.warn("ignored", "%d of %s (%s) in ranges that ask to be ignored: excluded", a.ignored, quantity.Count(d.Kernels, "kernel"), quantity.Duration(float64(a.ignoredNS)))
	}
	if lost, all := d.rec.LostKernels, d.rec.LostKernels+int64(d.attribution.calls); float64(lost) > mostLost*float64(all) {
		d.warn("lost_kernels", "%d of %s have no kernel: it was lost; record a shorter capture, and let the profiler finish", lost, quantity.Count(all, "launch"))
	}
	if n := d.attribution.launchless; n > 0 {
		d.warn("no_launch", "%d of %s without a recorded launch: no range of a thread locates them", n, quantity.Count(d.Kernels, "kernel"))
	}
}

// warnSteps tells where ranges go on and kernels do not, and how steps are numbered.
func (d *exportDescription) warnSteps() {
	a := d.attribution
	if a.stepsWithout > 0 {
		d.warn(endedEarlyCode, "%d of %s have ranges but no kernels, and are excluded: idle, or their kernels were lost", a.stepsWithout, quantity.Count(a.stepsSeen, "step"))
	}
	after, seen := a.labeledAfter, a.labeled
	if seen == 0 {
		after, seen = d.unknownRangesAfter(a.lastWork), len(d.rec.Ranges)
	}
	if float64(after) > mostAfter*float64(seen) {
		d.warn(endedEarlyCode, "%d of %s begin after the last kernel ended, over %s: the capture of kernels ended early", after, quantity.Count(seen, "range"), quantity.Duration(float64(d.rec.RangesEnd-a.lastWork)))
	}
	if a.idleProcesses > 0 {
		d.warn("no_kernels", "%s with named ranges but without kernels: idle, or a rank whose kernels were not captured", quantity.Count(a.idleProcesses, "process"))
	}
	if a.renumbered {
		d.warn("steps_renumbered", "numbers of steps are missing or repeated: steps are numbered in order of start")
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
	if slices.ContainsFunc(d.rec.RangeNames, func(name string) bool { return strings.HasPrefix(name, "layer_wise_benchmarks args ") }) {
		d.warn(singleLayers, "a benchmark of single layers: a step of the whole model runs more layers than these")
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
		n                int64
		code, what, text string
	}{
		{t.Backwards, "backwards", "event", "that end before they begin: excluded"},
		{t.OutOfRange, "out_of_range", "event", "at impossible times (beyond 104 days): excluded"},
		{t.ReusedCorrelations, "correlation_reused", "call", "with the correlation id of another call: each kernel is joined to the last call before it"},
		{t.Unended, "unended_kernels", "kernel", "without a recorded duration: excluded"},
		{t.OpenRanges, "open_ranges", "range", "never closed: taken to end with the capture"},
		{t.NoPID, "no_process", "kernel", "without a recorded process: assigned to an extra rank; others may be renumbered. Export one file per rank to avoid this"},
		{t.OtherDevice, "other_device", "kernel", "on another device than most of their process: counted for the same rank"},
	} {
		if w.n > 0 {
			d.warn(w.code, "%s %s", quantity.Count(w.n, w.what), w.text)
		}
	}
	if t.Adopted > 0 {
		d.warn("no_process", "%d of %s without a recorded process: assigned to the only one", t.Adopted, quantity.Count(d.Kernels, "kernel"))
	}
	if t.NoPIDs {
		d.warn("no_process", "no kernel has a recorded process: kernels are joined to calls by correlation id alone")
	}
}
