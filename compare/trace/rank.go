package trace

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/compare/capture"
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

// Rank is one expert-parallel process and the evidence that it has this number:
// "flag", "environment", "distributedInfo", "mpi_ranks", "file name", "device ordinal" or, where
// several processes use the same device, "process order".
type Rank struct {
	Rank     int    `json:"rank"`
	Export   string `json:"export"` // base name of the file
	PID      int64  `json:"pid"`
	DeviceID int64  `json:"device_id"`
	Evidence string `json:"evidence"`
}

// numberRanks gives what ran on each device of an export, in the order of processes, its number
// by the strongest evidence there is. Flag, environment and file name speak of one process,
// so they count only where the export holds one rank; the environment recorded is that of
// the command that was profiled, which in a report of several processes is their launcher.
func numberRanks(path string, rec *capture.Recording, devices []capture.Device, flag map[string]int) ([]Rank, error) {
	ranks := make([]Rank, len(devices))
	for i, d := range devices {
		ranks[i] = Rank{Export: filepath.Base(path), PID: capture.PID(rec.Processes[d.Process]),
			DeviceID: int64(d.Ordinal)}
	}
	number, given := givenRank(flag, path)
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

// oneRank reports whether something says that the only process of an export is
// one rank, on however many devices it worked: a rank given by hand, or one of
// several ranks. Without it, each device of a process is a rank.
func oneRank(path string, p *capture.Metadata, flag map[string]int) bool {
	if _, ok := givenRank(flag, path); ok {
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

// givenRank looks a path up in the flags: as given, by base name, or "" for all.
func givenRank(flag map[string]int, path string) (int, bool) {
	for _, key := range []string{path, filepath.Base(path), ""} {
		if rank, ok := flag[key]; ok {
			return rank, true
		}
	}
	return 0, false
}

// mpiRanks are the ranks in MPI_RANKS, if it names the process of every device, each once.
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
