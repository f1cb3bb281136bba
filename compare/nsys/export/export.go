// Package export says what one export, or any other capture, says about itself: the ranks
// that it holds, and by which evidence, how its CUDA graphs were recorded, and what it or its
// recording lost. It sees one recording at a time and judges no times.
package export

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/nsys/capture"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
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

// Counts are what attribution found in a recording that is worth a warning.
type Counts struct {
	Launches, Ranges int   // recorded
	Launchless       int   // kernels without a recorded launch
	Detached         int64 // replayed kernels whose node was created outside the capture
	Replayed         int64 // kernels that a graph replayed
	Renumbered       bool  // steps
	LastWork         int64 // when the last kernel or graph ended
	Labeled          int   // ranges whose name says something
	LabeledAfter     int   // of these, the ones that begin after LastWork
	StepsSeen        int   // steps by thread and number
	StepsWithout     int   // of these, the ones in which nothing ran
	IdleProcesses    int   // processes with such ranges in which nothing ran at all
	Ignored          int64 // kernels that the program asks to leave out
	IgnoredNS        int64
}

// Codes of warnings.
const (
	EndedEarly   = "ended_early"   // the capture of kernels ended before the work
	SingleLayers = "single_layers" // a program runs single layers of its model, not all of a step
)

// mostLost is the share of launches whose kernel may be missing: profilers drop some at the ends.
const mostLost = 0.002

// Describe is the export's entry in a result, with everything its reader must know.
func Describe(path string, rec *capture.Recording, counts Counts, ranks []Rank) Export {
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
	d.warnSingleLayers()
	d.warnIssues()
	return d.Export
}

// description collects what there is to say about one export.
type description struct {
	Export
	rec    *capture.Recording
	counts Counts
}

func (d *description) warn(code string, args ...any) {
	d.Warnings = append(d.Warnings, router.Warn(code, filepath.Base(d.Path), args...))
}

// describeGraphs tells the mode in which CUDA graphs were recorded, and what it hides.
func (d *description) describeGraphs() {
	whole, called := int64(len(d.rec.Graphs)), d.rec.Metadata.GraphLaunches
	switch {
	case whole > 0:
		d.GraphMode = "graph"
		d.warn("graph_mode", "graphs", whole)
		if called > whole {
			d.warn("graph_coverage", "recorded", whole, "launches", called)
		}
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

// warnSteps tells where ranges go on and kernels do not, and how steps are numbered.
func (d *description) warnSteps() {
	a := d.counts
	if a.StepsWithout > 0 {
		d.warn(EndedEarly, "why", "steps", "without", a.StepsWithout, "steps", a.StepsSeen)
	}
	after, seen := a.LabeledAfter, a.Labeled
	if seen == 0 {
		after, seen = d.unknownRangesAfter(a.LastWork), len(d.rec.Ranges)
	}
	if float64(after) > mostAfter*float64(seen) {
		d.warn(EndedEarly, "why", "ranges", "after", after, "ranges", seen, "time_ns", d.rec.RangesEnd-a.LastWork)
	}
	if a.IdleProcesses > 0 {
		d.warn("no_kernels", "processes", a.IdleProcesses)
	}
	if a.Renumbered {
		d.warn("steps_renumbered")
	}
}

// mostAfter is the share of ranges that begin after the last kernel ended and are not
// worth a warning: programs end with a few.
const mostAfter = 0.01

// warnSingleLayers tells of a benchmark of single layers.
func (d *description) warnSingleLayers() {
	// TensorRT-LLM's range has its arguments behind.
	if slices.ContainsFunc(d.rec.RangeNames,
		func(name string) bool { return strings.HasPrefix(name, "layer_wise_benchmarks args ") }) {
		d.warn(SingleLayers)
	}
}

// unknownRangesAfter counts the ranges that begin after a time, where no pattern
// knows any range. Programs end with a few of them; a tenth of all is more than
// that, and fewer count as none.
func (d *description) unknownRangesAfter(at int64) (n int) {
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
func (d *description) warnIssues() {
	for _, code := range []string{capture.Backwards, capture.OutOfRange, capture.ReusedCorrelations, capture.Unended,
		capture.OpenRanges, capture.NoPID, capture.OtherDevice} {
		if rows := d.rec.Issues[code]; rows > 0 {
			d.warn(code, "rows", rows)
		}
	}
	if n := d.rec.Issues[capture.Adopted]; n > 0 {
		d.warn(capture.NoPID, "why", capture.Adopted, "rows", n, "kernels", d.Kernels)
	}
	if d.rec.NoPIDs {
		d.warn(capture.NoPID, "why", "none")
	}
}

// The evidence by which a rank got its number, strongest first.
const (
	byFlag         = "flag"
	byEnvironment  = "environment"
	byMPI          = "mpi_ranks"
	byFileName     = "file name"
	byDevice       = "device ordinal"
	byProcessOrder = "process order"
)

// Rank is one expert-parallel process and the evidence that it has this number:
// "flag", "environment", "distributedInfo", "mpi_ranks", "file name", "device ordinal" or, where
// several processes use the same device, "process order".
type Rank struct {
	Rank     int    `json:"rank"`
	Export   string `json:"export"` // base name of the file
	PID      int64  `json:"pid"`
	DeviceID int64  `json:"device_id"`
	Streams  int    `json:"streams"` // on which it ran kernels
	Evidence string `json:"evidence"`
}

// Ranks gives what ran on each device of an export, in the order of processes, its number
// by the strongest evidence there is. Flag, environment and file name speak of one process,
// so they count only where the export holds one rank; the environment recorded is that of
// the command that was profiled, which in a report of several processes is their launcher.
func Ranks(path string, rec *capture.Recording, devices []capture.Device, flag map[string]int) ([]Rank, error) {
	ranks := make([]Rank, len(devices))
	for i, d := range devices {
		ranks[i] = Rank{Export: filepath.Base(path), PID: capture.PID(rec.Processes[d.Process]),
			DeviceID: int64(d.Ordinal)}
	}
	number, given := Given(flag, path)
	if given && len(ranks) != 1 {
		return nil, &input.Error{File: path, Expected: "one process, to give it a rank",
			Found: quantity.Count(len(ranks), "process"), Try: "leave the rank out", Err: ErrRank}
	}
	if given {
		ranks[0].Rank, ranks[0].Evidence = number, byFlag
		return ranks, nil
	}
	if len(ranks) == 1 {
		if number, ok := rec.Metadata.Rank(); ok {
			ranks[0].Rank, ranks[0].Evidence = number, cmp.Or(rec.Metadata.RankEvidence, byEnvironment)
			return ranks, nil
		}
	}
	if numbers, ok := mpiRanks(rec, devices); ok {
		return numbered(ranks, numbers, byMPI), nil
	}
	if len(ranks) == 1 {
		if number, ok := capture.RankInName(path); ok {
			ranks[0].Rank, ranks[0].Evidence = number, byFileName
			return ranks, nil
		}
	}
	if ordinals, distinct := deviceOrdinals(rec, devices); distinct {
		return numbered(ranks, ordinals, byDevice), nil
	}
	order := make([]int, len(ranks))
	for i := range order {
		order[i] = i
	}
	return numbered(ranks, order, byProcessOrder), nil
}

// numbered gives ranks their numbers by one evidence.
func numbered(ranks []Rank, numbers []int, evidence string) []Rank {
	for i, number := range numbers {
		ranks[i].Rank, ranks[i].Evidence = number, evidence
	}
	return ranks
}

// OneRank reports whether something says that the only process of an export is
// one rank, on however many devices it worked: a rank given by hand, or one of
// several ranks. Without it, each device of a process is a rank.
func OneRank(path string, p *capture.Metadata, flag map[string]int) bool {
	if _, ok := Given(flag, path); ok {
		return true
	}
	rank, ok := p.Rank()
	world, _ := p.WorldSize()
	for _, r := range p.MPIRanks {
		rank, ok = max(rank, r), true
	}
	return ok && (rank > 0 || world > 1)
}

// deviceOrdinals numbers the ranks by their devices: by the GPU's number in
// the machine where the export maps all of them, because under
// CUDA_VISIBLE_DEVICES every process may call its own device 0; else by the
// number that the process uses. They are no ranks if two are alike.
func deviceOrdinals(rec *capture.Recording, devices []capture.Device) (ordinals []int, distinct bool) {
	seen, mapped := map[int]bool{}, true
	for _, d := range devices {
		gpu, ok := rec.Metadata.GPUs[capture.PIDDevice{PID: capture.PID(rec.Processes[d.Process]),
			Device: int64(d.Ordinal)}]
		ordinals, mapped = append(ordinals, int(gpu)), mapped && ok
	}
	for i, d := range devices {
		if !mapped {
			ordinals[i] = int(d.Ordinal)
		}
		seen[ordinals[i]] = true
	}
	return ordinals, len(seen) == len(devices)
}

// Given looks a path up in the flags: as given, by base name, or "" for all.
func Given(flag map[string]int, path string) (int, bool) {
	for _, key := range []string{path, filepath.Base(path), ""} {
		if rank, ok := flag[key]; ok {
			return rank, true
		}
	}
	return 0, false
}

// mpiRanks are those of MPI_RANKS, if it names the process of every device, each once.
func mpiRanks(rec *capture.Recording, devices []capture.Device) (numbers []int, ok bool) {
	for _, d := range devices {
		number, ok := rec.Metadata.MPIRanks[rec.Processes[d.Process]]
		if !ok || slices.Contains(numbers, number) {
			return nil, false
		}
		numbers = append(numbers, number)
	}
	return numbers, true
}

// ErrRank is the error of ranks that cannot be assigned as asked.
var ErrRank = errors.New("ranks cannot be assigned")
