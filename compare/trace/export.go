package trace

import (
	"path/filepath"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/router"
)

// Export is one file and what it says about itself.
type Export struct {
	Path          string           `json:"path"`
	NsysVersion   string           `json:"nsys_version"`   // empty before 2022, which recorded none
	SchemaVersion string           `json:"schema_version"` // likewise
	Kernels       int64            `json:"kernels"`
	Launches      int64            `json:"launches"`
	Ranges        int64            `json:"ranges"`
	Ranks         []int            `json:"ranks"`
	GraphMode     string           `json:"graph_mode"`  // "none", "node" or "graph"
	GPU           string           `json:"gpu"`         // name of the first one; empty where not recorded
	CapturedNS    router.Stated    `json:"captured_ns"` // since the epoch
	Warnings      []router.Warning `json:"warnings"`
}

// exportCounts are what attribution found in a recording that is worth a warning.
type exportCounts struct {
	Launches, Ranges int   // recorded
	Launchless       int   // kernels without a recorded launch
	Detached         int64 // replayed kernels whose node was created outside the capture
	Replayed         int64 // kernels that a graph replayed
	LastWork         int64 // when the last kernel or graph ended
	Labeled          int   // ranges whose name says something
	LabeledAfter     int   // of these, the ones that begin after LastWork
	StepsSeen        int   // steps by thread and number
	StepsWithout     int   // of these, the ones in which nothing ran
	Ignored          int64 // kernels that the program asks to leave out
	IgnoredNS        int64
}

// Codes of warnings.
const (
	EndedEarly = "ended_early" // the capture of kernels ended before the work
)

// mostLost is the share of launches whose kernel may be missing: profilers drop some at the ends.
const mostLost = 0.002

// describe is the export's entry in a result, with everything its reader must know.
func describe(path string, rec *capture.Recording, counts exportCounts, ranks []Rank) Export {
	d := description{
		Export: Export{
			Path: path, NsysVersion: rec.Metadata.NsysVersion, SchemaVersion: rec.Metadata.SchemaVersion,
			Kernels: int64(len(rec.Kernels)), Launches: rec.APICalls, Ranges: int64(counts.Ranges),
			Ranks: []int{}, GraphMode: "none", GPU: rec.Metadata.GPU, CapturedNS: router.Stated(rec.Metadata.SessionUTC),
			Warnings: []router.Warning{},
		},
		rec: rec, counts: counts,
	}
	for _, r := range ranks {
		d.Ranks = append(d.Ranks, r.Rank)
	}
	d.describeGraphs()
	d.warnLosses()
	d.warnSteps()
	d.warnIssues()
	return d.Export
}

// description collects what there is to say about one export.
type description struct {
	Export
	rec    *capture.Recording
	counts exportCounts
}

func (d *description) warn(code string, args ...any) {
	d.Warnings = append(d.Warnings, router.Warn(code, filepath.Base(d.Path), args...))
}

// describeGraphs tells the mode in which CUDA graphs were recorded, and what it hides.
func (d *description) describeGraphs() {
	whole, called := int64(len(d.rec.Graphs)), d.rec.GraphLaunches
	switch {
	case whole > 0:
		d.GraphMode = "graph"
		d.warn("graph_mode", "graphs", whole)
	case d.counts.Replayed > 0, called > 0 && d.launchedTogether():
		d.GraphMode = "node"
	case called > 0:
		d.warn("graph_lost", "launches", called)
	}
	if n := d.counts.Detached; n > 0 {
		d.warn("graph_capture", "detached", n, "replayed", d.counts.Replayed)
	}
}

// launchedTogether reports whether a call launched several kernels, as only that of a
// graph does: PyTorch's profiler records them without their nodes.
func (d *description) launchedTogether() bool {
	launched := make([]bool, d.counts.Launches)
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
func (d *description) warnLosses() {
	if texts := d.rec.Metadata.Losses; len(texts) > 0 {
		d.warn("loss", "messages", texts)
	}
	if d.rec.Metadata.Partial != "" {
		d.warn("partial_export", "filter", d.rec.Metadata.Partial)
	}
	if a := d.counts; a.Ignored > 0 {
		d.warn("ignored", "ignored", a.Ignored, "kernels", d.Kernels, "time_ns", a.IgnoredNS)
	}
	if lost, all := d.rec.LostKernels, d.rec.LostKernels+int64(d.counts.Launches); float64(lost) > mostLost*float64(
		all) {
		d.warn("lost_kernels", "lost", lost, "launches", all)
	}
	if n := d.counts.Launchless; n > 0 {
		d.warn("no_launch", "kernels", n, "all", d.Kernels)
	}
}

// warnSteps tells where ranges go on and kernels do not.
func (d *description) warnSteps() {
	a := d.counts
	if a.StepsWithout > 0 {
		d.warn(EndedEarly, "why", "steps", "without", a.StepsWithout, "steps", a.StepsSeen)
	}
	if after, seen := a.LabeledAfter, a.Labeled; float64(after) > mostAfter*float64(seen) {
		d.warn(EndedEarly, "why", "ranges", "after", after, "ranges", seen, "time_ns", d.rec.RangesEnd-a.LastWork)
	}
}

// mostAfter is the share of ranges that begin after the last kernel ended and are not
// worth a warning: programs end with a few.
const mostAfter = 0.01

// warnIssues tells which rows could not be used as they are.
func (d *description) warnIssues() {
	for _, code := range []string{capture.Backwards, capture.OutOfRange, capture.ReusedCorrelations, capture.Unended,
		capture.OpenRanges, capture.OtherDevice} {
		if rows := d.rec.Issues[code]; rows > 0 {
			d.warn(code, "rows", rows)
		}
	}
}
