package nsys

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/moebalance/moebalance/compare/nsys/capture"
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

// assignRanks gives every unit of an export its rank by the strongest evidence
// there is. Flag, environment and file name speak of one process, so they count
// only where the export holds one unit; the environment recorded is that of the
// command that was profiled, which in a report of several processes is their
// launcher.
func assignRanks(path string, rec *capture.Recording, p *capture.Metadata, ledgers []*ledger, flag map[string]int) error {
	set := func(l *ledger, rank int, evidence string) {
		l.rank = Rank{
			Rank: rank, Export: filepath.Base(path), PID: capture.PID(rec.Processes[l.unit.Process]),
			DeviceID: int64(l.unit.Ordinal), Streams: l.rank.Streams, Evidence: evidence,
		}
	}
	if rank, ok := flagged(flag, path); ok {
		if len(ledgers) != 1 {
			return fmt.Errorf("%w: %q holds %d processes, so one rank cannot be given for it", ErrRank, path, len(ledgers))
		}
		set(ledgers[0], rank, byFlag)
		return nil
	}
	if len(ledgers) == 1 {
		if rank, ok := p.Rank(); ok {
			set(ledgers[0], rank, cmp.Or(p.RankEvidence, byEnvironment))
			return nil
		}
	}
	if rankByMPI(rec, p, ledgers, set) {
		return nil
	}
	if len(ledgers) == 1 {
		if rank, ok := rankInName(path); ok {
			set(ledgers[0], rank, byFileName)
			return nil
		}
	}
	ordinals, distinct := deviceOrdinals(rec, p, ledgers)
	for i, l := range ledgers {
		if distinct {
			set(l, ordinals[i], byDevice)
		} else {
			set(l, i, byProcessOrder) // ledgers come in the order of processes
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

// deviceOrdinals numbers the ledgers by their devices: by the GPU's number in
// the machine where the export maps all of them, because under
// CUDA_VISIBLE_DEVICES every process may call its own device 0; else by the
// number that the process uses. They are no ranks if two are alike.
func deviceOrdinals(rec *capture.Recording, p *capture.Metadata, ledgers []*ledger) (ordinals []int, distinct bool) {
	seen, mapped := map[int]bool{}, true
	for _, l := range ledgers {
		gpu, ok := p.GPUs[capture.PIDDevice{PID: capture.PID(rec.Processes[l.unit.Process]), Device: int64(l.unit.Ordinal)}]
		ordinals, mapped = append(ordinals, int(gpu)), mapped && ok
	}
	for i, l := range ledgers {
		if !mapped {
			ordinals[i] = int(l.unit.Ordinal)
		}
		seen[ordinals[i]] = true
	}
	return ordinals, len(seen) == len(ledgers)
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

// rankByMPI uses MPI_RANKS when it names the process of every unit, each once.
func rankByMPI(rec *capture.Recording, p *capture.Metadata, ledgers []*ledger, set func(*ledger, int, string)) bool {
	seen := map[int]bool{}
	for _, l := range ledgers {
		rank, ok := p.MPIRanks[rec.Processes[l.unit.Process]]
		if !ok || seen[rank] {
			return false
		}
		seen[rank] = true
	}
	for _, l := range ledgers {
		set(l, p.MPIRanks[rec.Processes[l.unit.Process]], byMPI)
	}
	return true
}

// rankName wants the whole word: the r1 of "deepseek-r1.rank0.sqlite" is a model's.
var rankName = regexp.MustCompile(`(?i)(?:^|[^a-z])rank[._-]?(\d{1,6})(?:[^0-9a-z]|$)`)

// rankInName reads "normal.rank3.sqlite" and "report_np8_rank3.sqlite".
func rankInName(path string) (int, bool) {
	m := rankName.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}

// ErrRank is the error of ranks that cannot be assigned as asked.
var ErrRank = errors.New("no such assignment of ranks")

// ErrSameRank is the error of exports that are of one rank, which a number given by
// hand can tell apart. It wraps ErrRank.
var ErrSameRank = fmt.Errorf("%w", ErrRank)

// checkRanks refuses two units of the same number: their times would be added.
func (r *reduction) checkRanks() error {
	for i := 1; i < len(r.parts); i++ {
		a, b := r.parts[i-1].rank, r.parts[i].rank
		if a.Rank == b.Rank {
			return fmt.Errorf("%w: %q (by %s) and %q (by %s) are both rank %d: want exports of one run, each of a rank of its own",
				ErrSameRank, a.Export, a.Evidence, b.Export, b.Evidence, a.Rank)
		}
	}
	return nil
}
