package nsys

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/compare/nsys/capture"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// The evidence by which a rank got its number, strongest first.
const (
	byFlag         = "flag"
	byEnvironment  = "environment"
	byMPI          = "mpi_ranks"
	byFileName     = "file name"
	byDevice       = "device ordinal"
	byProcessOrder = "process order"
)

// assignRanks gives every rank of an export its number by the strongest evidence
// there is. Flag, environment and file name speak of one process, so they count
// only where the export holds one rank; the environment recorded is that of the
// command that was profiled, which in a report of several processes is their
// launcher.
func assignRanks(path string, rec *capture.Recording, ranks []*rankEvents, flag map[string]int) error {
	set := func(r *rankEvents, number int, evidence string) {
		r.rank = Rank{
			Rank: number, Export: filepath.Base(path), PID: capture.PID(rec.Processes[r.device.Process]),
			DeviceID: int64(r.device.Ordinal), Streams: r.rank.Streams, Evidence: evidence,
		}
	}
	if number, ok := flagged(flag, path); ok {
		if len(ranks) != 1 {
			return &input.Error{File: path, Expected: "one process, to give it a rank",
				Found: quantity.Count(len(ranks), "process"), Try: "leave the rank out", Err: ErrRank}
		}
		set(ranks[0], number, byFlag)
		return nil
	}
	if len(ranks) == 1 {
		if number, ok := rec.Metadata.Rank(); ok {
			set(ranks[0], number, cmp.Or(rec.Metadata.RankEvidence, byEnvironment))
			return nil
		}
	}
	if rankByMPI(rec, ranks, set) {
		return nil
	}
	if len(ranks) == 1 {
		if number, ok := capture.RankInName(path); ok {
			set(ranks[0], number, byFileName)
			return nil
		}
	}
	ordinals, distinct := deviceOrdinals(rec, ranks)
	for i, r := range ranks {
		if distinct {
			set(r, ordinals[i], byDevice)
		} else {
			set(r, i, byProcessOrder) // ranks come in the order of processes
		}
	}
	return nil
}

// oneRank reports whether something says that the only process of an export is
// one rank, on however many devices it worked: a rank given by hand, or one of
// several ranks. Without it, each device of a process is a rank.
func oneRank(path string, p *capture.Metadata, flag map[string]int) bool {
	if _, ok := flagged(flag, path); ok {
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
func deviceOrdinals(rec *capture.Recording, ranks []*rankEvents) (ordinals []int, distinct bool) {
	seen, mapped := map[int]bool{}, true
	for _, r := range ranks {
		gpu, ok := rec.Metadata.GPUs[capture.PIDDevice{PID: capture.PID(rec.Processes[r.device.Process]),
			Device: int64(r.device.Ordinal)}]
		ordinals, mapped = append(ordinals, int(gpu)), mapped && ok
	}
	for i, r := range ranks {
		if !mapped {
			ordinals[i] = int(r.device.Ordinal)
		}
		seen[ordinals[i]] = true
	}
	return ordinals, len(seen) == len(ranks)
}

// flagged looks a path up in the flags: as given, by base name, or "" for all.
func flagged(flag map[string]int, path string) (int, bool) {
	for _, key := range []string{path, filepath.Base(path), ""} {
		if rank, ok := flag[key]; ok {
			return rank, true
		}
	}
	return 0, false
}

// rankByMPI uses MPI_RANKS when it names the process of every rank, each once.
func rankByMPI(rec *capture.Recording, ranks []*rankEvents, set func(*rankEvents, int, string)) bool {
	of := func(r *rankEvents) (int, bool) {
		number, ok := rec.Metadata.MPIRanks[rec.Processes[r.device.Process]]
		return number, ok
	}
	seen := map[int]bool{}
	for _, r := range ranks {
		number, ok := of(r)
		if !ok || seen[number] {
			return false
		}
		seen[number] = true
	}
	for _, r := range ranks {
		number, _ := of(r)
		set(r, number, byMPI)
	}
	return true
}

// ErrRank is the error of ranks that cannot be assigned as asked.
var ErrRank = errors.New("ranks cannot be assigned")

// ErrSameRank is the error of exports that are of one rank, which a number given by
// hand can tell apart. It wraps ErrRank.
var ErrSameRank = fmt.Errorf("%w", ErrRank)

// checkRanks refuses one capture given as two ranks, which would be in perfect balance, and
// two ranks of the same number: their times would be added.
func (r *reduction) checkRanks() error {
	sameTime := func(a, b kernelEvent) bool { return a.start == b.start && a.duration == b.duration }
	for i, p := range r.ranks {
		for _, o := range r.ranks[:i] {
			a, b := o.rank, p.rank
			copied := p.of != o.of && len(p.events) > 0 && slices.EqualFunc(p.events, o.events, sameTime)
			if !copied && a.Rank != b.Rank {
				continue
			}
			e := &input.Error{File: o.of.export.Path + " and " + p.of.export.Path,
				Expected: "exports of one run, one per rank"}
			e.Found, e.Err = fmt.Sprintf("two that claim rank %d (by %s and by %s)", a.Rank, a.Evidence, b.Evidence),
				ErrSameRank
			if copied {
				e.Found, e.Err = "one capture twice: all kernels of both run at the same times", ErrNotOneRun
			}
			return e
		}
	}
	return nil
}
