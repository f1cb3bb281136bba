package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/moebalance/moebalance/compare/nsys/capture/rows"
)

// What a caller can act on. Every error about an input wraps one of these or
// an error of the file system.
var (
	ErrNotExport = errors.New("not an nsys export")      // some other kind of file
	ErrReport    = errors.New("an nsys report")          // .nsys-rep, .qdrep or .qdstrm: export it first
	ErrTruncated = errors.New("cut short")               // fewer bytes than the header promises
	ErrDamaged   = errors.New("damaged")                 // SQLite cannot read a page or a table
	ErrUnsettled = errors.New("unfinished transaction")  // a write-ahead log or a journal stands beside the file
	ErrNoKernels = errors.New("no GPU kernels recorded") // readable, but without what the question needs
)

const sqliteMagic = "SQLite format 3\x00"

// database is one export, opened read-only. A connection serves one goroutine;
// connect makes more.
type database struct {
	path    string // as the user knows it
	file    string // as it is opened
	size    int64
	tables  map[string][]string // columns by table
	lastRow map[string]int64    // by table of events, see countRows
	meter   *meter
}

// openDatabase checks what kind of file path is before SQLite sees it, so that
// every wrong file is named for what it is, and lists its tables and columns.
// Nothing is written or created, beside the file or elsewhere.
func openDatabase(ctx context.Context, path string) (*database, error) {
	size, err := checkFile(path)
	if err != nil {
		return nil, err
	}
	file, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	db := &database{path: path, file: file, size: size}
	conn, err := db.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if db.tables, err = tablesOf(conn); err != nil {
		return nil, db.failed("reading the list of tables", err)
	}
	return db, nil
}

// checkThere wants a file, so that nothing waits on a pipe and nothing is read
// before a name that is wrong is told.
func CheckExists(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("no export at %q: %w; 'nsys export --type sqlite REPORT.nsys-rep' makes one", path, fs.ErrNotExist)
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%q is a folder, %w: name the .sqlite files in it", path, ErrNotExport)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%q is not a regular file, %w", path, ErrNotExport)
	}
	return info, nil
}

// checkFile tells an export from everything users mistake for one.
func checkFile(path string) (int64, error) {
	info, err := CheckExists(path)
	if err != nil {
		return 0, err
	}
	if isReport(path) {
		return 0, fmt.Errorf("%q is %w, want its SQLite export: run 'nsys export --type sqlite --output %s %s'",
			path, ErrReport, strings.TrimSuffix(path, filepath.Ext(path))+".sqlite", path)
	}
	head, err := readHead(path)
	if err != nil {
		return 0, err
	}
	switch {
	case len(head) == 0:
		return 0, fmt.Errorf("%q is empty, %w", path, ErrNotExport)
	case bytes.HasPrefix(head, []byte("version https://git-lfs")):
		return 0, fmt.Errorf("%q is a Git LFS pointer of %d bytes, %w: run 'git lfs pull'", path, info.Size(), ErrNotExport)
	case len(head) < 100 && strings.HasPrefix(sqliteMagic, string(head[:min(len(head), len(sqliteMagic))])):
		return 0, fmt.Errorf("%q is %w: want a header of 100 bytes, have %d", path, ErrTruncated, len(head))
	case !bytes.HasPrefix(head, []byte(sqliteMagic)):
		return 0, fmt.Errorf("%q is %w: want a SQLite 3 database, have a file that begins with %q; 'nsys export --type sqlite REPORT.nsys-rep' makes one",
			path, ErrNotExport, head[:min(len(head), 12)])
	}
	if want := promisedSize(head); info.Size() < want {
		return 0, fmt.Errorf("%q is %w: want %d bytes, have %d; export it again", path, ErrTruncated, want, info.Size())
	}
	for _, side := range []string{"-wal", "-journal"} {
		if s, err := os.Stat(path + side); err == nil && s.Size() > 0 {
			return 0, fmt.Errorf("%q has an %w beside it (%q, %d bytes): close the program that writes it, or export it again",
				path, ErrUnsettled, filepath.Base(path)+side, s.Size())
		}
	}
	return info.Size(), nil
}

func isReport(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".nsys-rep", ".qdrep", ".qdstrm":
		return true
	}
	return false
}

func readHead(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 100)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return head[:n], nil
}

// promisedSize is page size times page count as the SQLite header gives them
// (offsets 16 and 28; a stored 1 means 65536). The count is valid only when the
// change counter (24) equals the version it is valid for (92); otherwise 0.
// Source: https://www.sqlite.org/fileformat.html section 1.3.
func promisedSize(head []byte) int64 {
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 65536
	}
	if binary.BigEndian.Uint32(head[24:]) != binary.BigEndian.Uint32(head[92:]) {
		return 0
	}
	return page * int64(binary.BigEndian.Uint32(head[28:]))
}

// connect opens one more read-only connection, which ctx interrupts.
func (db *database) connect(ctx context.Context) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(db.uri(), sqlite.OpenReadOnly|sqlite.OpenURI)
	if err != nil {
		return nil, db.failed("opening it", err)
	}
	conn.SetInterrupt(ctx.Done())
	return conn, nil
}

// uri names the file for SQLite, which must not write beside it either.
func (db *database) uri() string {
	return (&url.URL{Scheme: "file", Path: db.file, RawQuery: "mode=ro&immutable=1"}).String()
}

// failed puts an error of SQLite into the reader's words.
func (db *database) failed(doing string, err error) error {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultInterrupt:
		return fmt.Errorf("reading %q: %w", db.path, context.Canceled)
	case sqlite.ResultNotADB, sqlite.ResultCorrupt, sqlite.ResultIOErr:
		return fmt.Errorf("%q is %w: %s: %v; export it again", db.path, ErrDamaged, doing, err)
	}
	return fmt.Errorf("%q: %s: %w", db.path, doing, err)
}

// tablesOf lists the columns of every table; system tables left out.
func tablesOf(conn *sqlite.Conn) (map[string][]string, error) {
	tables := map[string][]string{}
	err := query(conn, `SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY m.name, c.cid`,
		func(row *sqlite.Stmt) error {
			name := row.ColumnText(0)
			tables[name] = append(tables[name], row.ColumnText(1))
			return nil
		})
	return tables, err
}

// query runs sql and hands each row to visit, which must not keep it.
func query(conn *sqlite.Conn, sql string, visit func(*sqlite.Stmt) error) error {
	stmt, _, err := conn.PrepareTransient(sql)
	if err != nil {
		return err
	}
	defer func() { _ = stmt.Finalize() }()
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return err
		}
		if err := visit(stmt); err != nil {
			return err
		}
	}
}

// has reports whether the export holds the table with all the columns.
func (db *database) has(table string, columns ...string) bool {
	have, ok := db.tables[table]
	if !ok {
		return false
	}
	for _, want := range columns {
		found := false
		for _, c := range have {
			found = found || strings.EqualFold(c, want)
		}
		if !found {
			return false
		}
	}
	return true
}

// countRows learns the largest row number of every table of events: the number of
// its rows in any export as the profiler wrote it. That costs no scan.
func (db *database) countRows(conn *sqlite.Conn) error {
	db.lastRow = map[string]int64{}
	for _, table := range []string{kernelTable, callTable, rangeTable} {
		if !db.has(table) {
			continue
		}
		err := query(conn, `SELECT max(0, ifnull(max(rowid), 0)) FROM "`+table+`"`, func(row *sqlite.Stmt) error {
			db.lastRow[table] = row.ColumnInt64(0)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stream reads a table of events and tells the meter.
func (db *database) stream(ctx context.Context, conn *sqlite.Conn, q rows.Query, visit func(*rows.Row) error) error {
	visit, done := db.meter.counting(visit)
	defer done()
	return q.Each(ctx, conn, db.file, visit)
}

// room is for how many rows of a table to make room: exact for an export as the
// profiler wrote it, and never more than its bytes can hold (a row of events has
// 20 columns or more, each at least a byte).
func (db *database) room(table string) int64 { return min(db.lastRow[table], db.size/20) }
