package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
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
		"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "demangledName", "shortName", "launchType",
		"registersPerThread", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory", "gridId", "graphNodeId",
	}},
	{name: callTable, numbers: []string{"start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue"}},
	{name: copyTable, numbers: []string{"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "bytes", "copyKind", "graphNodeId"}},
	{name: fillTable, numbers: []string{"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "value", "bytes", "graphNodeId"}},
	{name: graphTable, numbers: []string{"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphId", "graphExecId"}},
	{name: nodeTable, numbers: []string{"start", "end", "eventClass", "globalTid", "graphNodeId", "originalGraphNodeId"}},
	{name: rangeTable, numbers: []string{"start", "end", "eventType", "rangeId", "globalTid", "endGlobalTid", "textId", "domainId"}, texts: []string{"text"}},
	{name: eventTypeTable, numbers: []string{"id"}, texts: []string{"name"}},
	{name: sessionTable, numbers: []string{"utcEpochNs"}},
	{name: deviceTable, numbers: []string{"gpuId", "cudaId", "pid"}},
	{name: "MPI_RANKS", numbers: []string{"globalTid", "rank"}},
}

// stringColumns refer to the table of strings.
var stringColumns = map[string][]string{kernelTable: {"demangledName", "shortName"}, callTable: {"nameId"}, rangeTable: {"textId"}}

const (
	diagnosticTable   = "DIAGNOSTIC_EVENT"
	environmentSuffix = ":ENVIRONMENT_VARIABLE"
)

// removedVariable stands for an environment variable in a scrubbed copy: how many there
// were is part of the evidence for the arm.
const removedVariable = `REMOVED=""`

// Scrub writes a copy of an export to out from which the same Trace follows, and
// which holds none of what a capture knows about its machine and user: the
// environment but for the switches of balanced routing and the variables that give ranks,
// host and user names, paths, arguments, output streams, the names of processes
// and threads, serial numbers of GPUs, and every column that the analysis does
// not need. The names of kernels and ranges stay, and the times.
//
// The export is not touched. out is a new or an empty file; an error leaves none.
func Scrub(ctx context.Context, export, out string) error {
	db, err := openDatabase(ctx, export)
	if err != nil {
		return err
	}
	if there, err := os.Stat(out); err == nil && there.Size() > 0 {
		return fmt.Errorf("scrubbing %q: want a new file for the copy, have %q", export, out)
	}
	if err := db.scrubTo(ctx, out); err != nil {
		_ = os.Remove(out) // half a copy; the error that led here matters more
		return err
	}
	return nil
}

// scrubbedID is the application id in the header of a scrubbed copy.
const scrubbedID = 0x6d6f6562

// IsScrubbed reports whether a file is a copy made by Scrub.
func IsScrubbed(path string) bool {
	const at = 68 // of the application id, https://www.sqlite.org/fileformat.html §1.3
	head := Head(path, at+4)
	return len(head) == at+4 && bytes.HasPrefix(head, []byte(sqliteMagic)) && binary.BigEndian.Uint32(head[at:]) == scrubbedID
}

// scrubTo fills a new database, so that nothing dropped was ever in it.
func (db *database) scrubTo(ctx context.Context, path string) (err error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate|sqlite.OpenURI)
	if err != nil {
		return fmt.Errorf("making the copy of %q: %w", db.path, err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	conn.SetInterrupt(ctx.Done())
	run := func(sql string, args ...any) error {
		if err := sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{Args: args}); err != nil {
			return db.failed("copying it", err)
		}
		return nil
	}
	for _, sql := range []string{"PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", fmt.Sprintf("PRAGMA application_id = %d", scrubbedID)} {
		if err := run(sql); err != nil {
			return err
		}
	}
	if err := run("ATTACH ? AS export", db.uri()); err != nil {
		return err
	}
	if err := run("BEGIN"); err != nil {
		return err
	}
	types, err := db.eventTypes(conn) // of the export: the copy has no table yet
	if err != nil {
		return db.failed("copying it", err)
	}
	for _, t := range scrubbedTables {
		if err := db.scrubTable(t, types, run); err != nil {
			return err
		}
	}
	for _, step := range []func(*sqlite.Conn, func(string, ...any) error) error{db.scrubStrings, db.scrubMetadata, db.scrubDiagnostics} {
		if err := step(conn, run); err != nil {
			return err
		}
	}
	return run("COMMIT")
}

// scrubTable copies the columns that are there, in the order of rows. A number is
// copied as the number that readers of the export see, so that no text hides in
// its place. Of ranges only those stay that have a name to read, and of the names
// of event types only theirs.
func (db *database) scrubTable(t scrubbedTable, types eventTypes, run func(string, ...any) error) error {
	if !db.has(t.name) {
		return nil
	}
	var columns, values []string
	for _, c := range t.numbers {
		if db.has(t.name, c) {
			columns, values = append(columns, `"`+c+`" INTEGER`), append(values, `CAST("`+c+`" AS INTEGER)`)
		}
	}
	for _, c := range t.texts {
		if db.has(t.name, c) {
			columns, values = append(columns, `"`+c+`" TEXT`), append(values, `"`+c+`"`)
		}
	}
	if len(columns) == 0 {
		return nil
	}
	if err := run(fmt.Sprintf("CREATE TABLE main.%s (%s)", t.name, strings.Join(columns, ", "))); err != nil {
		return err
	}
	where := ""
	switch {
	case t.name == rangeTable && db.has(t.name, "eventType"):
		where = "WHERE eventType IN " + types.sql()
	case t.name == eventTypeTable && db.has(t.name, "name"):
		where = "WHERE name IN " + eventTypeNames()
	}
	return run(fmt.Sprintf("INSERT INTO main.%s SELECT %s FROM export.%s %s ORDER BY rowid", t.name, strings.Join(values, ", "), t.name, where))
}

// scrubStrings keeps the strings that the copied tables refer to.
func (db *database) scrubStrings(_ *sqlite.Conn, run func(string, ...any) error) error {
	if !db.has(stringTable, "id", "value") {
		return nil
	}
	if err := run("CREATE TABLE main." + stringTable + " (id INTEGER NOT NULL PRIMARY KEY, value TEXT)"); err != nil {
		return err
	}
	var used []string
	for _, t := range scrubbedTables {
		for _, c := range stringColumns[t.name] {
			if db.has(t.name, c) {
				used = append(used, fmt.Sprintf(`SELECT "%s" FROM main.%s`, c, t.name))
			}
		}
	}
	if len(used) == 0 {
		return nil
	}
	return run(fmt.Sprintf("INSERT INTO main.%s SELECT id, value FROM export.%s WHERE id IN (%s) ORDER BY id", stringTable, stringTable, strings.Join(used, " UNION ")))
}

// keptMetadata are the facts about an export that the analysis reads.
var keptMetadata = []string{"EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION", "EXPORT_PARAM_TABLES_TO_EXPORT", "EXPORT_PARAM_TIMES_TO_EXPORT"}

// scrubMetadata keeps versions and limits of the export, and of the environment
// the allowed variables by name and value and the others by number.
func (db *database) scrubMetadata(conn *sqlite.Conn, run func(string, ...any) error) error {
	for _, table := range []string{"META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE"} {
		if !db.has(table, "name", "value") {
			continue
		}
		if err := run("CREATE TABLE main." + table + " (name TEXT, value TEXT)"); err != nil {
			return err
		}
		var rows [][2]string
		err := query(conn, "SELECT name, value FROM export."+table+" ORDER BY rowid", func(row *sqlite.Stmt) error {
			name, value := row.ColumnText(0), row.ColumnText(1)
			if strings.HasSuffix(name, environmentSuffix) {
				name = "PROCESS_0" + environmentSuffix
				if variable, _, _ := strings.Cut(value, "="); !allowed(variable) {
					value = removedVariable
				}
			} else if !slices.Contains(keptMetadata, name) {
				return nil
			}
			rows = append(rows, [2]string{name, value})
			return nil
		})
		if err != nil {
			return db.failed("copying it", err)
		}
		for _, row := range rows {
			if err := run("INSERT INTO main."+table+" VALUES (?, ?)", row[0], row[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// scrubDiagnostics keeps of each text the words that mean lost events, each row a
// text of its own as before.
func (db *database) scrubDiagnostics(conn *sqlite.Conn, run func(string, ...any) error) error {
	if !db.has(diagnosticTable, "text") {
		return nil
	}
	if err := run("CREATE TABLE main." + diagnosticTable + " (text TEXT)"); err != nil {
		return err
	}
	var texts []string
	err := query(conn, "SELECT DISTINCT text FROM export."+diagnosticTable+" ORDER BY rowid", func(row *sqlite.Stmt) error {
		text := row.ColumnText(0)
		loss, unsupported := lossText.FindString(text), unsupportedText.FindString(text)
		if !strings.Contains(loss, unsupported) {
			loss = strings.TrimSpace(loss + " " + unsupported)
		}
		if loss != "" {
			texts = append(texts, loss+strings.Repeat(" ", len(texts))) // distinct, as the texts were
		}
		return nil
	})
	if err != nil {
		return db.failed("copying it", err)
	}
	for _, text := range texts {
		if err := run("INSERT INTO main."+diagnosticTable+" VALUES (?)", text); err != nil {
			return err
		}
	}
	return nil
}
