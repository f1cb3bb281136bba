package trace

import (
	"path/filepath"

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
	CapturedNS    router.Stated    `json:"captured_ns"` // UTC of the capture's zero; 0 when not recorded
	Warnings      []router.Warning `json:"warnings"`
}

// mostLost is the share of launches whose kernel may be missing: profilers drop some at the ends.
const mostLost = 0.002

// describe tells everything that the reader of an export must know: the mode in which CUDA graphs
// were recorded, what the capture or the export left out, and which rows could not be used as they are.
func (a *attribution) describe() {
	rec, d := a.rec, &a.Export
	if len(rec.Graphs) > 0 {
		d.GraphMode = "graph"
	} else if a.replayed > 0 || rec.GraphLaunches > 0 { // PyTorch's profiler does not record nodes
		d.GraphMode = "node"
	}
	warn := func(due bool, code string, args ...any) {
		if due {
			d.Warnings = append(d.Warnings, router.Warn(code, filepath.Base(d.Path), args...))
		}
	}
	lost, launches := rec.LostKernels+a.zero, rec.LostKernels+int64(len(rec.Launches))
	warn(len(rec.Graphs) > 0, graphMode, "graphs", len(rec.Graphs))
	warn(a.detached > 0, "graph_capture", "detached", a.detached, "replayed", a.replayed)
	warn(len(rec.Metadata.Losses) > 0, "loss", "messages", rec.Metadata.Losses)
	warn(a.ignored > 0, "ignored", "ignored", a.ignored, "kernels", d.Kernels)
	warn(float64(lost) > mostLost*float64(launches), lostKernels, "lost", lost, "launches", launches)
	warn(len(rec.Kernels) < int(d.Kernels), "repeated", "kernels", int(d.Kernels)-len(rec.Kernels), "all", d.Kernels)
	warn(a.launchless > 0, "no_launch", "kernels", a.launchless, "all", d.Kernels)
	warn(rec.BadTimes > 0, "out_of_range", "rows", rec.BadTimes)
}
