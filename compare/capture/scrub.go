package capture

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// scrubbedTable is a table of an export as far as a scrubbed copy keeps it.
type scrubbedTable struct {
	name    string
	numbers []string // columns of whole numbers, kept as such whatever they hold
	texts   []string // columns of text
}

// scrubbedTables is all that a copy keeps besides strings, metadata and
// diagnostics: what happened when and where, and the names of kernels, calls and
// ranges. Everything else is left out because it is not named here: environment,
// host, user, paths, output streams, other processes' names, serial numbers.
var scrubbedTables = []scrubbedTable{
	{name: kernelTable, numbers: []string{
		"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "demangledName", "shortName",
		"launchType",
		"registersPerThread", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory",
		"dynamicSharedMemory", "gridId", "graphNodeId",
	}},
	{name: callTable, numbers: []string{"start", "end", "eventClass", "globalTid", "correlationId", "nameId",
		"returnValue"}},
	{name: copyTable, numbers: []string{"start", "end", "deviceId", "contextId", "streamId", "correlationId",
		"globalPid", "bytes", "copyKind", "graphNodeId"}},
	{name: fillTable, numbers: []string{"start", "end", "deviceId", "contextId", "streamId", "correlationId",
		"globalPid", "value", "bytes", "graphNodeId"}},
	{name: graphTable, numbers: []string{"start", "end", "deviceId", "contextId", "streamId", "correlationId",
		"globalPid", "graphId", "graphExecId"}},
	{name: nodeTable, numbers: []string{"start", "end", "eventClass", "globalTid", "graphNodeId",
		"originalGraphNodeId"}},
	{name: rangeTable, numbers: []string{"start", "end", "eventType", "rangeId", "globalTid", "endGlobalTid", "textId",
		"domainId"}, texts: []string{"text"}},
	{name: sessionTable, numbers: []string{"utcEpochNs"}},
	{name: deviceTable, numbers: []string{"gpuId", "cudaId", "pid"}},
	{name: rankTable, numbers: []string{"globalTid", "rank"}},
}

// stringColumns refer to the table of strings.
var stringColumns = map[string][]string{kernelTable: {"demangledName", "shortName"}, callTable: {"nameId"},
	rangeTable: {"textId"}}

const environmentSuffix = ":ENVIRONMENT_VARIABLE"

// removedVariable stands for an environment variable in a scrubbed copy: how many there
// were is part of the evidence for the arm.
const removedVariable = `REMOVED=""`

// Scrub writes a copy of an export to out from which the same Trace follows, but for the
// name of the GPU, and
// which holds none of what a capture knows about its machine and user: the
// environment but for the switches of balanced routing and the variables that give ranks,
// host and user names, paths, arguments, output streams, the names of processes
// and threads, serial numbers of GPUs, and every column that the analysis does
// not need. The names of kernels and ranges stay, and the times. revealing lists
// those names that contain the capture's user or host name.
//
// The export is not touched. out is a new or an empty file; an error leaves none.
func Scrub(ctx context.Context, export, out string) (revealing []string, err error) {
	if isTorchTrace(export) {
		return nil, &input.Error{File: export, Expected: "an nsys export (SQLite), the only kind that is scrubbed",
			Found: "a PyTorch trace", Err: ErrNotExport}
	}
	db, err := openDatabase(ctx, export)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.sql.Close()) }()
	if there, err := os.Stat(out); err == nil && there.Size() > 0 {
		return nil, &input.Error{File: out, Expected: "a new or empty file for the scrubbed copy",
			Found: quantity.Bytes(float64(there.Size()))}
	}
	revealing, err = db.scrubTo(ctx, out)
	if err != nil {
		_ = os.Remove(out) // half a copy; the error that led here matters more
	}
	return revealing, db.failed("scrubbing it", err)
}

// scrubbedID is the application id in the header of a scrubbed copy.
const scrubbedID = 0x6d6f6562

// IsScrubbed reports whether a file is a copy made by Scrub.
func IsScrubbed(path string) bool {
	const at = 68 // of the application id, https://www.sqlite.org/fileformat.html §1.3
	head := Head(path, at+4)
	return len(head) == at+4 && bytes.HasPrefix(head, []byte(sqliteMagic)) &&
		binary.BigEndian.Uint32(head[at:]) == scrubbedID
}

// scrubber fills a new database, so that nothing dropped was ever in it.
type scrubber struct {
	db   *database
	ctx  context.Context
	conn *sql.Conn // to the copy, with the original attached as export
	err  error     // the first one, after which nothing is done
}

// scrubTo writes the copy, and lists the names in it that reveal the user or host.
func (db *database) scrubTo(ctx context.Context, path string) (revealing []string, err error) {
	words, err := db.identities(ctx)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	copied, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path}).String())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	conn, err := copied.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	s := scrubber{db: db, ctx: ctx, conn: conn}
	s.run(fmt.Sprintf(
		"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA application_id = %d; ATTACH ? AS export",
		scrubbedID), db.uri())
	s.run("BEGIN")
	for _, t := range scrubbedTables {
		s.table(t)
	}
	s.strings()
	s.metadata()
	s.diagnostics()
	s.run("COMMIT")
	revealing = s.revealing(words) // may set err
	return revealing, s.err
}

func (s *scrubber) run(text string, args ...any) {
	if s.err == nil {
		_, s.err = s.conn.ExecContext(s.ctx, text, args...)
	}
}

// identityVariables name the user or the host in an environment.
var identityVariables = []string{"USER", "LOGNAME", "USERNAME", "HOME", "HOSTNAME", "HOST"}

// identities are the names of the capture's users and hosts, in lower case.
func (db *database) identities(ctx context.Context) (words []string, err error) {
	add := func(word string) {
		word = strings.ToLower(filepath.Base(strings.Trim(word, `" `)))
		if len(word) > 2 && word != "root" && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	err = metadata(ctx, db, "META_DATA_CAPTURE", func(name, value string) {
		if variable, value, ok := strings.Cut(value, "="); ok && strings.HasSuffix(name, environmentSuffix) &&
			slices.Contains(identityVariables, variable) {
			add(value)
		}
	})
	if err == nil {
		err = metadata(ctx, db, "TARGET_INFO_SYSTEM_ENV", func(name, value string) {
			if name = strings.ToLower(name); strings.Contains(name, "hostname") || strings.Contains(name, "username") {
				add(value)
			}
		})
	}
	return words, err
}

// revealing lists the names of the copy that contain one of the words.
func (s *scrubber) revealing(words []string) (names []string) {
	for _, c := range [][]string{{rangeTable, "text"}, {stringTable, "value", "id"}} {
		if s.err != nil || !s.db.has(c[0], c[1:]...) {
			continue
		}
		s.err = eachRow(s.ctx, s.conn, []string{c[1]}, "main."+c[0]+" GROUP BY "+c[1], func(row []string) {
			name := strings.ToLower(row[0])
			if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(name, w) }) {
				names = append(names, row[0])
			}
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// table copies the columns that are there, in the order of rows. A number is
// copied as the number that readers of the export see, so that no text hides in
// its place. Of ranges only those stay that have a name to read.
func (s *scrubber) table(t scrubbedTable) {
	var columns, values []string
	for _, c := range t.numbers {
		if s.db.has(t.name, c) {
			columns, values = append(columns, `"`+c+`" INTEGER`), append(values, `CAST("`+c+`" AS INTEGER)`)
		}
	}
	for _, c := range t.texts {
		if s.db.has(t.name, c) {
			columns, values = append(columns, `"`+c+`" TEXT`), append(values, `"`+c+`"`)
		}
	}
	if len(columns) == 0 {
		return
	}
	where := ""
	if t.name == rangeTable && s.db.has(t.name, "eventType") {
		where = "WHERE eventType IN (" + strings.ReplaceAll(strings.Trim(fmt.Sprint(eventTypes), "[]"), " ", ", ") + ")"
	}
	s.run(fmt.Sprintf(
		"CREATE TABLE main.%[1]s (%[2]s); INSERT INTO main.%[1]s SELECT %[3]s FROM export.%[1]s %[4]s ORDER BY rowid",
		t.name, strings.Join(columns, ", "), strings.Join(values, ", "), where))
}

// strings keeps the strings that the copied tables refer to.
func (s *scrubber) strings() {
	if !s.db.has(stringTable, "id", "value") {
		return
	}
	used := []string{"SELECT NULL"}
	for _, t := range scrubbedTables {
		for _, c := range stringColumns[t.name] {
			if s.db.has(t.name, c) {
				used = append(used, fmt.Sprintf(`SELECT "%s" FROM main.%s`, c, t.name))
			}
		}
	}
	s.run(fmt.Sprintf(
		"CREATE TABLE main.%[1]s (id INTEGER NOT NULL PRIMARY KEY, value TEXT); INSERT INTO main.%[1]s SELECT id, value "+
			"FROM export.%[1]s WHERE id IN (%[2]s) ORDER BY id",
		stringTable, strings.Join(used, " UNION ")))
}

// keptMetadata are the facts about an export that the analysis reads.
var keptMetadata = []string{"EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION", "EXPORT_PARAM_TABLES_TO_EXPORT",
	"EXPORT_PARAM_TIMES_TO_EXPORT"}

// metadata keeps versions and limits of the export, and of the environment
// the allowed variables by name and value and the others by number.
func (s *scrubber) metadata() {
	for _, table := range []string{"META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE"} {
		if s.err != nil || !s.db.has(table, "name", "value") {
			continue
		}
		var rows [][]any
		s.err = metadata(s.ctx, s.db, table, func(name, value string) {
			if strings.HasSuffix(name, environmentSuffix) {
				name = "PROCESS_0" + environmentSuffix
				if variable, _, _ := strings.Cut(value, "="); !allowed(variable) {
					value = removedVariable
				}
			} else if !slices.Contains(keptMetadata, name) {
				return
			}
			rows = append(rows, []any{name, value})
		})
		s.fill(table, "name TEXT, value TEXT", rows)
	}
}

// fill makes a table of texts.
func (s *scrubber) fill(table, columns string, rows [][]any) {
	s.run("CREATE TABLE main." + table + " (" + columns + ")")
	for _, row := range rows {
		s.run("INSERT INTO main."+table+" VALUES (?"+strings.Repeat(", ?", len(row)-1)+")", row...)
	}
}

// diagnostics keeps of each text the words that mean lost events, each row a
// text of its own as before.
func (s *scrubber) diagnostics() {
	if s.err != nil || !s.db.has(diagnosticTable, "text") {
		return
	}
	var texts [][]any
	s.err = eachRow(s.ctx, s.db.sql, []string{"text"}, diagnosticTable+distinctTexts, func(row []string) {
		loss, unsupported := lossText.FindString(row[0]), unsupportedText.FindString(row[0])
		if !strings.Contains(loss, unsupported) {
			loss = strings.TrimSpace(loss + " " + unsupported)
		}
		if loss != "" {
			texts = append(texts, []any{loss + strings.Repeat(" ", len(texts))}) // distinct, as the texts were
		}
	})
	s.fill(diagnosticTable, "text TEXT", texts)
}
