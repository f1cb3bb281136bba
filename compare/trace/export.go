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

// describe is the export's entry in a result, with everything its reader must know: the mode in which CUDA graphs
// were recorded, what the capture or the export left out, and which rows could not be used as they are.
func describe(path string, rec *capture.Recording, counts exportCounts, ranks []Rank) Export {
	d := Export{
		Path: path, NsysVersion: rec.Metadata.NsysVersion, SchemaVersion: rec.Metadata.SchemaVersion,
		Kernels: int64(len(rec.Kernels)), Launches: rec.APICalls, Ranges: int64(counts.Ranges),
		Ranks: []int{}, GraphMode: "none", GPU: rec.Metadata.GPU, CapturedNS: router.Stated(rec.Metadata.SessionUTC),
		Warnings: []router.Warning{},
	}
	for _, r := range ranks {
		d.Ranks = append(d.Ranks, r.Rank)
	}
	graphs, lost := len(rec.Graphs), rec.LostKernels
	switch {
	case graphs > 0:
		d.GraphMode = "graph"
	case counts.Replayed > 0, rec.GraphLaunches > 0: // PyTorch's profiler does not record nodes
		d.GraphMode = "node"
	}
	warn := func(due bool, code string, args ...any) {
		if due {
			d.Warnings = append(d.Warnings, router.Warn(code, filepath.Base(path), args...))
		}
	}
	warn(graphs > 0, graphMode, "graphs", graphs)
	warn(counts.Detached > 0, "graph_capture", "detached", counts.Detached, "replayed", counts.Replayed)
	warn(len(rec.Metadata.Losses) > 0, "loss", "messages", rec.Metadata.Losses)
	warn(counts.Ignored > 0, "ignored", "ignored", counts.Ignored, "kernels", d.Kernels, "time_ns", counts.IgnoredNS)
	launches := lost + int64(counts.Launches)
	warn(float64(lost) > mostLost*float64(launches), lostKernels, "lost", lost, "launches", launches)
	warn(counts.Launchless > 0, "no_launch", "kernels", counts.Launchless, "all", d.Kernels)
	warn(rec.BadTimes > 0, "out_of_range", "rows", rec.BadTimes)
	warn(rec.OtherDevice > 0, "other_device", "rows", rec.OtherDevice)
	return d
}
