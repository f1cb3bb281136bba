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
	Ignored          int64 // kernels that the program asks to leave out
	IgnoredNS        int64
}

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
		d.warn(graphMode, "graphs", whole)
	case d.counts.Replayed > 0, called > 0: // PyTorch's profiler does not record nodes
		d.GraphMode = "node"
	}
	if n := d.counts.Detached; n > 0 {
		d.warn("graph_capture", "detached", n, "replayed", d.counts.Replayed)
	}
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
	if lost, all := d.rec.LostKernels, d.rec.LostKernels+int64(d.counts.Launches); float64(lost) > mostLost*float64(all) {
		d.warn(lostKernels, "lost", lost, "launches", all)
	}
	if n := d.counts.Launchless; n > 0 {
		d.warn("no_launch", "kernels", n, "all", d.Kernels)
	}
}

// warnIssues tells which rows could not be used as they are.
func (d *description) warnIssues() {
	for _, code := range []string{capture.Backwards, capture.OutOfRange, capture.ReusedCorrelations, capture.Unended,
		capture.OpenRanges, capture.OtherDevice} {
		if rows := d.rec.Issues[code]; rows > 0 {
			d.warn(code, "rows", rows)
		}
	}
}
