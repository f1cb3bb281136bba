package capture

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Metadata is what an export says about itself, before its events are read.
type Metadata struct {
	NsysVersion   string
	SchemaVersion string
	Environment   map[string]string // allowed variables only
	Variables     int               // variables recorded, of any name
	RankEvidence  string            // where the rank among environment comes from, if not from there
	MPIRanks      map[int64]int     // rank by global process id
	GPUs          map[PIDDevice]int64
	GPU           string   // name of the first GPU; empty when not recorded
	SessionUTC    int64    // UTC nanoseconds of the capture's zero; 0 when not recorded
	GraphLaunches int64    // API calls that launched a CUDA graph
	Losses        []string // diagnostics that mean lost events
	Unsupported   string   // diagnostic that says why CUDA was not traced
	Partial       string   // what a partial export was limited to
}

// The variables that are ever looked at. An export holds the whole environment
// of the profiled process; nothing outside this list leaves the file.
var (
	rankVariables = []string{"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK",
		"SLURM_PROCID"}
	worldVariables = []string{"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS"}
)

func allowed(name string) bool {
	return slices.Contains(rankVariables, name) || slices.Contains(worldVariables, name) ||
		slices.Contains(ArmVariables, name)
}

// read fills in the probe. Tables that are not there leave their part empty.
func (p *Metadata) read(ctx context.Context, db *database) error {
	return p.follow(ctx, db, p.readExportData, p.readCaptureData, p.readSession, p.readRanks, p.readDevices,
		p.readDiagnostics, p.countGraphLaunches)
}

func (p *Metadata) follow(ctx context.Context, db *database, steps ...func(context.Context, *database) error) error {
	p.Environment, p.MPIRanks, p.GPUs = map[string]string{}, map[int64]int{}, map[PIDDevice]int64{}
	for _, step := range steps {
		if err := step(ctx, db); err != nil {
			return err
		}
	}
	return nil
}

// readExportData reads the table that was EXPORT_META_DATA before 2023.3.1 and
// META_DATA_EXPORT since; files of 2021 have neither.
func (p *Metadata) readExportData(ctx context.Context, db *database) error {
	table := "META_DATA_EXPORT"
	if !db.has(table) {
		table = "EXPORT_META_DATA"
	}
	return metadata(ctx, db, table, func(name, value string) {
		switch name {
		case "EXPORT_PRODUCT_VERSION":
			p.NsysVersion = value
		case "EXPORT_SCHEMA_VERSION":
			p.SchemaVersion = value
		case "EXPORT_PARAM_TABLES_TO_EXPORT", "EXPORT_PARAM_TIMES_TO_EXPORT":
			if value != "" {
				what := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(name, "EXPORT_PARAM_"), "_TO_EXPORT"))
				p.Partial = strings.TrimPrefix(p.Partial+", "+what+" "+value, ", ")
			}
		}
	})
}

func (p *Metadata) readCaptureData(ctx context.Context, db *database) error {
	return metadata(ctx, db, "META_DATA_CAPTURE", func(name, value string) {
		if !strings.HasSuffix(name, ":ENVIRONMENT_VARIABLE") {
			return
		}
		p.Variables++
		key, quoted, _ := strings.Cut(value, "=")
		if !allowed(key) {
			return
		}
		if v, err := strconv.Unquote(quoted); err == nil {
			quoted = v
		}
		p.Environment[key] = quoted
	})
}

// metadata visits a table of names and values, in which names repeat.
func metadata(ctx context.Context, db *database, table string, visit func(name, value string)) error {
	return columns(ctx, db, table, []string{"name", "value"}, " ORDER BY rowid",
		func(row []string) { visit(row[0], row[1]) })
}

func (p *Metadata) readSession(ctx context.Context, db *database) error {
	return columns(ctx, db, sessionTable, []string{"utcEpochNs"}, " LIMIT 1",
		func(row []int64) { p.SessionUTC = row[0] })
}

// readRanks reads MPI_RANKS, the only table that states ranks.
func (p *Metadata) readRanks(ctx context.Context, db *database) error {
	return columns(ctx, db, rankTable, []string{"globalTid", "rank"}, "", func(row []int64) {
		if rank := row[1]; rank >= 0 && rank < MaxRanks {
			p.MPIRanks[row[0]&processMask] = int(rank)
		}
	})
}

// PIDDevice is a device as one process numbers it.
type PIDDevice struct{ PID, Device int64 }

// readDevices reads which GPU of the machine each process's devices are.
func (p *Metadata) readDevices(ctx context.Context, db *database) error {
	err := columns(ctx, db, gpuTable, []string{"name"}, " WHERE name IS NOT NULL LIMIT 1",
		func(row []string) { p.GPU = strings.ToValidUTF8(row[0], "\uFFFD") })
	if err != nil {
		return err
	}
	return columns(ctx, db, deviceTable, []string{"pid", "cudaId", "gpuId"}, " WHERE gpuId IS NOT NULL",
		func(row []int64) {
			if gpu := row[2]; gpu >= 0 && gpu < MaxRanks {
				p.GPUs[PIDDevice{row[0], row[1]}] = gpu
			}
		})
}

// ByDistributedInfo is the evidence of a rank that a PyTorch trace states.
const ByDistributedInfo = "distributedInfo"

// MaxRanks bounds a rank that anybody can mean.
const MaxRanks = 1 << 20

// Diagnostics that mean lost events, and those that say why nothing was traced.
// Other texts may hold paths and are never shown.
var (
	lossText = regexp.MustCompile(
		`(?i)^Not all \w+ events might have been collected|Some CUPTI events might be missing|events? (?:were|was) (?:lost|` +
			`dropped)`)
	unsupportedText = regexp.MustCompile(
		`(?i)installed CUDA driver version [^/\\]{0,80}is not supported|CUPTI[^./\\]{0,80}(?:fail|error|not (?:supported|` +
			`permitted))|No CUDA events collected`)
)

// distinctTexts is each text once, in the order in which they came.
const distinctTexts = " GROUP BY text ORDER BY min(rowid)"

func (p *Metadata) readDiagnostics(ctx context.Context, db *database) error {
	return columns(ctx, db, diagnosticTable, []string{"text"}, distinctTexts, func(row []string) {
		if m := lossText.FindString(row[0]); m != "" {
			p.Losses = append(p.Losses, strings.ToValidUTF8(m, "\uFFFD"))
		}
		if m := unsupportedText.FindString(row[0]); m != "" && p.Unsupported == "" {
			p.Unsupported = strings.ToValidUTF8(m, "\uFFFD")
		}
	})
}

// countGraphLaunches counts the calls that replayed a graph, whatever version
// suffix their name carries.
func (p *Metadata) countGraphLaunches(ctx context.Context, db *database) error {
	var ids []string // none in most exports, whose calls need not be read then
	err := columns(ctx, db, stringTable, []string{"id", "value"},
		" WHERE value LIKE 'cudaGraphLaunch%' OR value LIKE 'cuGraphLaunch%'",
		func(row []string) { ids = append(ids, row[0]) })
	if err != nil || len(ids) == 0 || !db.has(callTable, "nameId") {
		return err
	}
	return eachRow(ctx, db.sql, []string{"count(*)"}, callTable+" WHERE nameId IN ("+strings.Join(ids, ",")+")",
		func(row []int64) { p.GraphLaunches = row[0] })
}
