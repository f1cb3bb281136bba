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
	Environment   map[string]string  // allowed variables only
	Variables     int                // variables recorded, of any name
	RankEvidence  string             // where the rank among environment comes from, if not from there
	MPIRanks      map[int64]int      // rank by global process id
	GPUs          map[[2]int64]int64 // by process, and the device as it numbers it
	GPU           string             // name of the first GPU; empty when not recorded
	SessionUTC    int64              // UTC nanoseconds of the capture's zero; 0 when not recorded
	Losses        []string           // diagnostics that mean lost events
	Unsupported   string             // diagnostic that says why CUDA was not traced
}

// The variables that are ever looked at. An export holds the whole environment
// of the profiled process; nothing outside this list leaves the file.
var (
	rankVariables = []string{"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK",
		"SLURM_PROCID"}
	worldVariables = []string{"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS"}
)

// read fills in what the tables of metadata say, whichever there are. The table of the export
// was EXPORT_META_DATA before 2023.3.1; MPI_RANKS is the only one that states ranks.
func (m *Metadata) read(ctx context.Context, db *database) error {
	m.Environment, m.MPIRanks, m.GPUs = map[string]string{}, map[int64]int{}, map[[2]int64]int64{}
	pair := []string{"name", "value"}
	text := func(to *string) func([]string) { return func(row []string) { *to = valid(row[len(row)-1]) } }
	for _, t := range []struct {
		table   string
		columns []string
		rest    string
		fill    func([]string)
	}{
		{"META_DATA_EXPORT", pair, " WHERE name = 'EXPORT_PRODUCT_VERSION'", text(&m.NsysVersion)},
		{"META_DATA_EXPORT", pair, " WHERE name = 'EXPORT_SCHEMA_VERSION'", text(&m.SchemaVersion)},
		{"EXPORT_META_DATA", pair, " WHERE name = 'EXPORT_PRODUCT_VERSION'", text(&m.NsysVersion)},
		{"EXPORT_META_DATA", pair, " WHERE name = 'EXPORT_SCHEMA_VERSION'", text(&m.SchemaVersion)},
		{"META_DATA_CAPTURE", pair, " WHERE name LIKE '%:ENVIRONMENT_VARIABLE' ORDER BY rowid", m.variable},
		{"TARGET_INFO_SESSION_START_TIME", []string{"utcEpochNs"}, " LIMIT 1",
			func(row []string) { m.SessionUTC = whole(row[0]) }},
		{"MPI_RANKS", []string{"globalTid", "rank"}, "", func(row []string) {
			if rank := whole(row[1]); rank >= 0 && rank < MaxRanks {
				m.MPIRanks[whole(row[0])&processMask] = int(rank)
			}
		}},
		{"TARGET_INFO_GPU", []string{"name"}, " WHERE name IS NOT NULL LIMIT 1", text(&m.GPU)},
		{"TARGET_INFO_CUDA_DEVICE", []string{"pid", "cudaId", "gpuId"}, " WHERE gpuId IS NOT NULL", func(row []string) {
			if gpu := whole(row[2]); gpu >= 0 && gpu < MaxRanks {
				m.GPUs[[2]int64{whole(row[0]), whole(row[1])}] = gpu
			}
		}},
		{"DIAGNOSTIC_EVENT", []string{"text"}, " GROUP BY text ORDER BY min(rowid)", m.diagnostic},
	} {
		if err := db.rows(ctx, t.table, t.columns, t.rest, t.fill); err != nil {
			return err
		}
	}
	return nil
}

// variable takes one of the environment, such as RANK="3", if it is allowed.
func (m *Metadata) variable(row []string) {
	m.Variables++
	key, value, _ := strings.Cut(row[1], "=")
	if slices.Contains(slices.Concat(rankVariables, worldVariables, armVariables), key) {
		if v, err := strconv.Unquote(value); err == nil {
			value = v
		}
		m.Environment[key] = value
	}
}

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

// diagnostic takes what a text says of lost events.
func (m *Metadata) diagnostic(row []string) {
	if text := lossText.FindString(row[0]); text != "" {
		m.Losses = append(m.Losses, valid(text))
	}
	if text := unsupportedText.FindString(row[0]); text != "" && m.Unsupported == "" {
		m.Unsupported = valid(text)
	}
}
