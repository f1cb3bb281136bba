package trace

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// Rank is one expert-parallel process and the evidence that it has this number, strongest first:
// "flag", "environment" or "distributedInfo", "mpi_ranks", "file name", "device ordinal" or, where
// several processes use the same device, "process order".
type Rank struct {
	Rank     int    `json:"rank"`
	Export   string `json:"export"` // base name of the file
	PID      int64  `json:"pid"`
	DeviceID int64  `json:"device_id"`
	Evidence string `json:"evidence"`
}

// Errors of ranks that cannot be numbered as asked, and of exports that cannot be ranks of one run.
var (
	errRank      = errors.New("ranks cannot be assigned")
	ErrNotOneRun = errors.New("the exports are not of one run")
)

// numberRanks gives what ran on each device of an export, in the order of processes, its number
// by the strongest evidence there is. Flag, environment and file name speak of one process,
// so they count only where the export holds one rank; the environment recorded belongs to
// the command that was profiled, which in a report of several processes is their launcher.
func (e *exportSummary) numberRanks(rec *capture.Recording, flag map[string]int) error {
	path, n := e.Export.Path, len(e.Ranks)
	flagged, given := givenRank(flag, path)
	if given && n != 1 {
		return &input.Error{File: path, Expected: "one process, to give it a rank", Found: quantity.Count(n, "process"),
			Try: "leave the rank out", Err: errRank}
	}
	recorded, known := rec.Metadata.Rank()
	named, hasName := capture.RankInName(path)
	always := func(rank int) func(int) (int, bool) { return func(int) (int, bool) { return rank, true } }
	process := func(i int) int64 { return rec.Processes[e.Ranks[i].device.Process] }
	ordinal := func(i int) int64 { return int64(e.Ranks[i].device.Ordinal) }
	ofMachine := func(i int) (int, bool) { // under CUDA_VISIBLE_DEVICES every process may call its own device 0
		gpu, on := rec.Metadata.GPUs[[2]int64{capture.PID(process(i)), ordinal(i)}]
		return int(gpu), on
	}
	for _, by := range []struct {
		evidence string
		ok       bool
		number   func(i int) (int, bool)
	}{
		{"flag", given, always(flagged)},
		{cmp.Or(rec.Metadata.RankEvidence, "environment"), known && n == 1, always(recorded)},
		{"mpi_ranks", true, func(i int) (int, bool) { rank, ok := rec.Metadata.MPIRanks[process(i)]; return rank, ok }},
		{"file name", hasName && n == 1, always(named)},
		{"device ordinal", true, ofMachine},
		{"device ordinal", true, func(i int) (int, bool) { return int(ordinal(i)), true }},
		{"process order", true, func(i int) (int, bool) { return i, true }},
	} {
		seen := map[int]bool{}
		for i, p := range e.Ranks {
			if rank, ok := by.number(i); by.ok && ok && 0 <= rank && rank < capture.MaxRanks {
				seen[rank] = true
				p.Rank = Rank{rank, filepath.Base(path), capture.PID(process(i)), ordinal(i), by.evidence}
			}
		}
		if len(seen) == n {
			break
		}
	}
	return nil
}

// oneRank reports whether something says that the only process of an export is
// one rank, on however many devices it worked: a rank given by hand, or one of
// several ranks. Without it, each device of a process is a rank.
func oneRank(path string, p *capture.Metadata, flag map[string]int) bool {
	_, given := givenRank(flag, path)
	rank, ok := p.Rank()
	world, _ := p.WorldSize()
	for _, r := range p.MPIRanks {
		rank, ok = max(rank, r), true
	}
	return given || ok && (rank > 0 || world > 1)
}

// givenRank looks a path up in the flags: as given, by base name, or "" for all.
func givenRank(flag map[string]int, path string) (int, bool) {
	for _, key := range []string{path, filepath.Base(path), ""} {
		if rank, ok := flag[key]; ok {
			return rank, true
		}
	}
	return 0, false
}

// oneRun refuses exports of both arms, one capture given as two ranks, which would be in perfect balance, and
// two ranks of the same number, whose times would be added.
func (r *reduction) oneRun() error {
	arms := map[string]string{}
	for _, d := range r.exports {
		arms[d.Arm] = cmp.Or(arms[d.Arm], d.Export.Path+" ("+d.ArmEvidence+")")
	}
	if normal, perfect := arms[capture.Normal], arms[capture.Perfect]; normal != "" && perfect != "" {
		return &input.Error{File: normal + " and " + perfect, Expected: "exports of one arm",
			Found: "one of the normal and one of the perfect arm",
			Try:   "'moebalance compare' takes both arms, also as a folder that holds both", Err: ErrNotOneRun}
	}
	refuse := func(o, p *rankEvents, found string, err error) error {
		return &input.Error{File: o.of.Export.Path + " and " + p.of.Export.Path, Expected: "exports of one run, one per rank",
			Found: found, Err: err,
			Try: "give the files of one run, or of two runs to 'moebalance compare'; 'trace --rank FILE=N' mends a wrong rank"}
	}
	sameTime := func(a, b event) bool { return a.Start == b.Start && a.NS == b.NS }
	for i, p := range r.ranks {
		for _, o := range r.ranks[:i] {
			if o.of != p.of && len(p.events) > 0 && slices.EqualFunc(p.events, o.events, sameTime) {
				return refuse(o, p, "one capture twice: all kernels of both run at the same times", ErrNotOneRun)
			}
		}
		if i > 0 && r.ranks[i-1].Rank.Rank == p.Rank.Rank {
			o := r.ranks[i-1]
			by := slices.Compact([]string{o.Rank.Evidence, p.Rank.Evidence})
			return refuse(o, p, fmt.Sprintf("two of rank %d (by %s)", p.Rank.Rank, strings.Join(by, " and by ")), errRank)
		}
	}
	return nil
}

// GateExperts are the numbers of experts that the gates among the kernels are compiled for, ascending:
// several where one model drafts for another, none where no name tells.
func (t *Trace) GateExperts() (numbers []int) {
	for i := range t.Kernels {
		if experts := kernel.GateExperts(t.Kernels[i].Name); experts > 0 {
			numbers = append(numbers, experts)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}
