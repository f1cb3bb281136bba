// Package capture reads a capture of any source into one Recording: SQLite exports
// of Nsight Systems, and traces of PyTorch's profiler.
//
// An export is a database of lazily created tables whose columns move between
// versions. It is opened read-only, probed for what is there, and each table is
// streamed once in order. Whoever analyzes a Recording sees nothing of the file.
// Nothing is attributed or judged here; package trace does.
//
// The time of a kernel takes two forms: a row of the file (rows.Row of an export, torchEvent of a trace), and a
// Kernel of the Recording. Of these, package trace makes its table of events.
package capture

import (
	"context"
	"strconv"

	"github.com/moebalance/moebalance/router/input"
)

// Read reads an export or a trace of PyTorch's profiler, in which something ran on a GPU. Progress is told how many
// bytes more have been read, by several goroutines; nil tells nobody.
func Read(ctx context.Context, path string, progress func(bytes int64)) (*Recording, error) {
	if isTorchTrace(path) {
		return readTorchTrace(ctx, path, progress)
	}
	db, err := openExport(ctx, path)
	if err != nil {
		return nil, err
	}
	defer db.sql.Close()
	db.report = progress
	if db.room(ctx, kernelTable) > 0 && (!db.has(stringTable, "id", "value") || db.room(ctx, stringTable) == 0) {
		return nil, &input.Error{File: path, Expected: "the names of kernels in a table " + stringTable + " of id and value",
			Found: "none", Try: exportAgain}
	}
	p := &Metadata{}
	if err := p.read(ctx, db); err != nil {
		return nil, db.failed(ctx, "reading its metadata", err)
	}
	rec, err := read(ctx, db)
	switch {
	case err != nil:
		return nil, err
	case len(rec.Kernels)+len(rec.Graphs) == 0:
		return nil, db.noKernels(p, rec.BadTimes)
	}
	rec.Metadata = *p
	return rec, nil
}

// ReadMetadata reads what an export says about itself, and no event. A trace of PyTorch's profiler says nothing of
// the environment of its capture.
func ReadMetadata(ctx context.Context, path string) (*Metadata, error) {
	p := &Metadata{}
	if isTorchTrace(path) {
		return p, nil
	}
	db, err := openExport(ctx, path)
	if err != nil {
		return nil, err
	}
	defer db.sql.Close()
	return p, db.failed(ctx, "reading its metadata", p.read(ctx, db))
}

// noKernels says why an export without kernels has none.
func (db *database) noKernels(p *Metadata, badTimes int64) error {
	why, try := "a capture that did not trace CUDA", "profile with 'nsys profile --trace cuda,nvtx'"
	switch {
	case p.Unsupported != "":
		why, try = p.Unsupported, ""
	case badTimes > 0:
		why, try = "events at impossible times", "export it again, without --ts-normalize and --ts-shift"
	case db.has(callTable):
		why, try = "API calls but no kernels: the driver or the permissions did not allow CUPTI to record them, or the "+
			"capture stopped before any ran", ""
	case len(db.tables) > 0 && !db.has(stringTable):
		why, try = "none of the tables of an nsys export", "'nsys export --type sqlite REPORT.nsys-rep' writes one"
	}
	return &input.Error{File: db.path, Expected: "GPU kernels", Found: why, Try: try}
}

// number is the first of the variables that holds a rank or a count of ranks.
func (m *Metadata) number(variables []string) (int, bool) {
	for _, v := range variables {
		if n, err := strconv.Atoi(m.Environment[v]); err == nil && n >= 0 && n < MaxRanks {
			return n, true
		}
	}
	return 0, false
}

// Rank is the rank that the environment gives.
func (m *Metadata) Rank() (int, bool) { return m.number(rankVariables) }

// WorldSize is the number of ranks of the whole run that the environment gives.
func (m *Metadata) WorldSize() (int, bool) { return m.number(worldVariables) }

// armVariables are the switches of balanced routing that tell a capture's arm,
// by engine: TensorRT-LLM, SGLang (two), vLLM.
var armVariables = []string{
	"ENABLE_PERFECT_ROUTER", "SGLANG_SIMULATE_ROUND_ROBIN_EXPERTS", "SGLANG_SIMULATE_UNIFORM_EXPERTS",
	"VLLM_MOE_ROUTING_SIMULATION_STRATEGY",
}
