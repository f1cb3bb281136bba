package capture

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"github.com/moebalance/moebalance/compare/capture/rows"
	"github.com/moebalance/moebalance/router/input"
)

const exportAgain = "export it again"

// database is one export, opened read-only.
type database struct {
	path   string
	size   int64
	sql    *sql.DB
	tables map[string][]string // columns by table
	report func(bytes int64)   // is told of bytes that are read; nil tells nobody
}

// openExport checks what kind of file path is before SQLite sees it, so that
// every wrong file is named for what it is, and lists its tables and columns.
// Nothing is written or created, beside the file or elsewhere.
func openExport(ctx context.Context, path string) (*database, error) {
	size, err := checkFile(path)
	if err != nil {
		return nil, err
	}
	db := &database{path: path, size: size, tables: map[string][]string{}}
	if db.sql, err = sql.Open("sqlite", "file:"+url.PathEscape(path)+"?mode=ro&immutable=1"); err != nil {
		return nil, err
	}
	err = db.each(ctx, []string{"m.name", "c.name"}, `sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY m.name, c.cid`,
		func(row []string) { db.tables[row[0]] = append(db.tables[row[0]], row[1]) })
	if err != nil {
		db.sql.Close()
	}
	return db, db.failed(ctx, "reading the list of tables", err)
}

// sqliteMagic begins the header of a SQLite file, which has headSize bytes.
const (
	sqliteMagic = "SQLite format 3\x00"
	headSize    = 100
)

// checkFile tells an export, whose size it returns, from everything users mistake for one.
func checkFile(path string) (size int64, err error) {
	f, info, err := input.Regular(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, headSize))
	switch {
	case err != nil:
		return 0, &input.Error{File: path, Err: err}
	case isReport(path):
		return 0, &input.Error{File: path, Expected: "a SQLite export", Found: "an nsys report", Try: fmt.Sprintf(
			"run 'nsys export --type sqlite --output %s %s'", strings.TrimSuffix(path, filepath.Ext(path))+".sqlite", path)}
	case !bytes.HasPrefix(head, []byte(sqliteMagic)):
		return 0, noExport(path, head)
	}
	return info.Size(), unfinished(path, head, info.Size())
}

// packedMagic begins files of zip, zstd and xz.
var packedMagic = []string{"PK\x03\x04", "\x28\xb5\x2f\xfd", "\xfd7zXZ"}

// noExport says what a file is that is not of SQLite.
func noExport(path string, head []byte) error {
	fault := &input.Error{File: path, Expected: "an nsys export (SQLite) or a PyTorch trace (JSON)",
		Try: "'nsys export --type sqlite REPORT.nsys-rep' writes an export"}
	packed := slices.ContainsFunc(packedMagic, func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) })
	if packed || string(Head(path, int64(len(sqliteMagic)))) == sqliteMagic { // behind gzip or a byte order mark
		fault.Found, fault.Try = "a file that is packed, or saved by an editor", "unpack it, or "+exportAgain
	} else if fault.Found = input.EngineLog(string(Head(path, torchHead))); fault.Found == "" {
		fault.Found = input.Beginning(head)
		fault.Try += "; 'moebalance counts' reads expert counts"
	}
	return fault
}

// unfinished says what a SQLite file lacks: bytes that its header promises, or rows in a log beside it.
func unfinished(path string, head []byte, size int64) error {
	promised := int64(headSize)
	if len(head) == headSize { // pages times their size: https://www.sqlite.org/fileformat.html section 1.3
		promised = int64(binary.BigEndian.Uint16(head[16:])) * int64(binary.BigEndian.Uint32(head[28:]))
	}
	if size < promised {
		return &input.Error{File: path, Expected: fmt.Sprintf("%d bytes", promised),
			Found: fmt.Sprintf("%d, a truncated file", size), Try: exportAgain}
	}
	fault := &input.Error{File: path, Expected: "a closed database",
		Try: "close the program that writes it and copy all its files, or " + exportAgain}
	for _, suffix := range []string{"-wal", "-journal"} {
		name := filepath.Base(path) + suffix
		switch log, err := os.Stat(path + suffix); {
		case err == nil && log.Size() > 0:
			fault.Found = fmt.Sprintf("%q beside it, an unfinished transaction", name)
			return fault
		case err != nil && suffix == "-wal" && max(head[18], head[19]) == 2: // its versions, which profilers leave at 1
			fault.Found = fmt.Sprintf("one whose log %q is not here, so rows can be missing", name)
			return fault
		}
	}
	return nil
}

func isReport(path string) bool {
	return slices.Contains([]string{".nsys-rep", ".qdrep", ".qdstrm"}, strings.ToLower(filepath.Ext(path)))
}

// failed puts an error of SQLite into the reader's words.
func (db *database) failed(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("reading %q: %w", db.path, context.Canceled)
	}
	return &input.Error{File: db.path, Position: doing, Found: "damaged: " + err.Error(), Try: exportAgain}
}

// rows hands the columns of a table to visit as texts, "" for NULL, and nothing where the table
// or one of them is not there. visit must not keep the slice.
func (db *database) rows(ctx context.Context, table string, list []string, rest string, visit func([]string)) error {
	if !db.has(table, list...) {
		return nil
	}
	return db.each(ctx, list, table+rest, visit)
}

// each is rows of any expressions.
func (db *database) each(ctx context.Context, list []string, from string, visit func([]string)) error {
	values := make([]string, len(list))
	texts, targets := make([]string, len(list)), make([]any, len(list))
	for i, c := range list {
		texts[i], targets[i] = "ifnull(CAST("+c+" AS TEXT), '')", &values[i]
	}
	return rows.Ask(ctx, db.sql, "SELECT "+strings.Join(texts, ", ")+" FROM "+from, nil, targets, func() error {
		visit(values)
		return nil
	})
}

// has reports whether the export holds the table with all the columns.
func (db *database) has(table string, columns ...string) bool {
	have, ok := db.tables[table]
	for _, want := range columns {
		ok = ok && slices.ContainsFunc(have, func(c string) bool { return strings.EqualFold(c, want) })
	}
	return ok
}

// whole reads a whole number, 0 for anything else.
func whole(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// room is for how many rows of a table to make room: its largest row number, which is exact for an export as the
// profiler wrote it, and never more than its bytes can hold (a row of events has 20 columns or more, each at least a
// byte).
func (db *database) room(ctx context.Context, table string) (rows int64) {
	if db.has(table) {
		_ = db.each(ctx, []string{"max(rowid)"}, table, func(row []string) { rows = whole(row[0]) }) // reading it fails too
	}
	return max(0, min(rows, db.size/20))
}
