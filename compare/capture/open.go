package capture

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/moebalance/moebalance/router/input"
)

// What a caller can act on. Every error about an input wraps one of these or
// an error of the file system.
var (
	ErrNotExport  = errors.New("not an nsys export")      // some other kind of file
	ErrReport     = errors.New("an nsys report")          // .nsys-rep, .qdrep or .qdstrm: export it first
	ErrTruncated  = errors.New("truncated")               // fewer bytes than the header promises
	ErrDamaged    = errors.New("damaged")                 // SQLite cannot read a page or a table
	ErrUnfinished = errors.New("unfinished transaction")  // a write-ahead log or a journal stands beside the file
	ErrNoKernels  = errors.New("no GPU kernels recorded") // readable, but without what the question needs
)

const (
	sqliteMagic = "SQLite format 3\x00"
	exportAgain = "export it again"
	makeExport  = "'nsys export --type sqlite REPORT.nsys-rep' writes one"
)

// database is one export, opened read-only.
type database struct {
	path    string // as the user knows it
	file    string // as it is opened
	size    int64
	sql     *sql.DB
	tables  map[string][]string // columns by table
	lastRow map[string]int64    // by table of events, see look
	base    int64               // that all times are shifted by, see look
	told    atomic.Int64        // bytes
	report  func(bytes int64)   // of Options; nil tells nobody
	done    func()              // removes the file, where it was converted
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
	db := &database{path: path, file: file, size: size, tables: map[string][]string{}}
	if db.sql, err = sql.Open("sqlite", db.uri()); err != nil {
		return nil, err
	}
	err = db.each(ctx, []string{"m.name", "c.name"}, `sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY m.name, c.cid`,
		func(row []string) { db.tables[row[0]] = append(db.tables[row[0]], row[1]) })
	if err != nil {
		_ = db.sql.Close()
		return nil, db.failed("reading the list of tables", err)
	}
	return db, nil
}

// CheckExists wants a file, so that nothing waits on a pipe and nothing is read
// before a name that is wrong is told.
func CheckExists(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &input.Error{File: path, Expected: "an export", Found: "no such file", Try: makeExport,
			Err: fs.ErrNotExist}
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, &input.Error{File: path, Expected: "an export", Found: "a folder",
			Try: "name the .sqlite files in it", Err: ErrNotExport}
	case !info.Mode().IsRegular():
		return nil, &input.Error{File: path, Expected: "a regular file", Found: "a device or a pipe", Err: ErrNotExport}
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
		return 0, &input.Error{File: path, Expected: "a SQLite export", Found: ErrReport.Error(), Err: ErrReport,
			Try: fmt.Sprintf("run 'nsys export --type sqlite --output %s %s'",
				strings.TrimSuffix(path, filepath.Ext(path))+".sqlite", path)}
	}
	head, err := readHead(path)
	if err != nil {
		return 0, err
	}
	whole := len(head) == headSize && bytes.HasPrefix(head, []byte(sqliteMagic))
	beside := ""
	for _, suffix := range []string{"-wal", "-journal"} {
		if s, err := os.Stat(path + suffix); err == nil && s.Size() > 0 && beside == "" {
			beside = fmt.Sprintf("%q of %d bytes beside it, an unfinished transaction", filepath.Base(path)+suffix, s.Size())
		}
	}
	_, noLog := os.Stat(path + "-wal")
	const aCapture = "an nsys export (SQLite) or a PyTorch trace (JSON)"
	for _, fault := range []struct {
		is                   bool
		kind                 error
		expected, found, try string
	}{
		{len(head) == 0, ErrNotExport, aCapture, "an empty file", makeExport},
		{bytes.HasPrefix(head, []byte(lfsMark)), ErrNotExport, aCapture,
			fmt.Sprintf("a Git LFS pointer of %d bytes", info.Size()), "run 'git lfs pull'"},
		{!whole && bytes.HasPrefix([]byte(sqliteMagic), head[:min(len(head), len(sqliteMagic))]), ErrTruncated,
			fmt.Sprintf("a header of %d bytes", headSize), fmt.Sprint(len(head)), exportAgain},
		{!whole, ErrNotExport, aCapture, beginning(head), makeExport + "; 'moebalance counts' reads expert counts"},
		{whole && info.Size() < promisedSize(head), ErrTruncated, fmt.Sprintf("%d bytes", promisedSize(head)),
			fmt.Sprintf("%d, a truncated file", info.Size()), exportAgain},
		{beside != "", ErrUnfinished, "a closed database", beside, "close the program that writes it, or " + exportAgain},
		// Offsets 18 and 19: 2 is for a database with a write-ahead log, which the profiler never writes.
		{whole && noLog != nil && (head[18] == 2 || head[19] == 2), ErrUnfinished, "a database without a write-ahead log",
			fmt.Sprintf("one whose log %q is not here, so rows can be missing", filepath.Base(path)+"-wal"),
			"copy the log too and close it with 'sqlite3 FILE \"PRAGMA journal_mode=delete\"', or " + exportAgain},
	} {
		if fault.is {
			return 0, &input.Error{File: path, Expected: fault.expected, Found: fault.found, Try: fault.try,
				Err: fault.kind}
		}
	}
	return info.Size(), nil
}

// beginning tells what a file begins with: its first word where it is text.
func beginning(head []byte) string {
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		return "a gzip file that holds neither"
	case bytes.ContainsFunc(head[:min(len(head), headSize-utf8.UTFMax)], // the last character may be cut
		func(r rune) bool { return r == utf8.RuneError || r < ' ' && !unicode.IsSpace(r) }):
		return "binary data"
	}
	return fmt.Sprintf("text that begins with %.12q", head)
}

func isReport(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".nsys-rep", ".qdrep", ".qdstrm":
		return true
	}
	return false
}

// headSize is the size of a SQLite header; lfsMark begins a Git LFS pointer.
const (
	headSize = 100
	lfsMark  = "version https://git-lfs"
)

func readHead(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, headSize))
}

// promisedSize is page size times page count as the SQLite header gives them
// (offsets 16 and 28; a stored 1 means 65536). The count is valid only when the
// change counter (24) equals the version it is valid for (92); otherwise 0.
// Source: https://www.sqlite.org/fileformat.html section 1.3.
func promisedSize(head []byte) int64 {
	if len(head) < headSize {
		return 0
	}
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 65536
	}
	if binary.BigEndian.Uint32(head[24:]) != binary.BigEndian.Uint32(head[92:]) {
		return 0
	}
	return page * int64(binary.BigEndian.Uint32(head[28:]))
}

// uri names the file for SQLite, which must not write beside it either.
func (db *database) uri() string {
	return (&url.URL{Scheme: "file", Path: db.file, RawQuery: "mode=ro&immutable=1"}).String()
}

// failed puts an error of SQLite into the reader's words.
func (db *database) failed(doing string, err error) error {
	var known *input.Error
	if err == nil {
		return nil
	}
	if errors.As(err, &known) {
		known.File = cmp.Or(known.File, db.path)
		return err
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("reading %q: %w", db.path, context.Canceled)
	}
	var fault *sqlite.Error
	if errors.As(err, &fault) {
		switch fault.Code() & 0xff { // without what extends it
		case sqlite3.SQLITE_INTERRUPT:
			return fmt.Errorf("reading %q: %w", db.path, context.Canceled)
		case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR:
			return &input.Error{File: db.path, Position: doing, Found: "damaged: " + err.Error(), Try: exportAgain,
				Err: ErrDamaged}
		}
	}
	return &input.Error{File: db.path, Position: doing, Found: err.Error(), Err: err}
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
	found, err := db.sql.QueryContext(ctx, "SELECT "+strings.Join(texts, ", ")+" FROM "+from)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		if err := found.Scan(targets...); err != nil {
			return err
		}
		visit(values)
	}
	return found.Err()
}

// readAll reads groups of tables, each group beside the others. The first error ends them all.
func (db *database) readAll(ctx context.Context, groups ...[]table) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, tables := range groups {
		group.Go(func() error {
			for _, t := range tables {
				if err := db.failed("reading its events", db.stream(ctx, t)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// progress tells of bytes read, at most as many as the file has.
func (db *database) progress(bytes int64) {
	if told := db.told.Add(bytes); db.report != nil && told <= db.size {
		db.report(bytes)
	} else {
		db.told.Add(-bytes)
	}
}

// has reports whether the export holds the table with all the columns.
func (db *database) has(table string, columns ...string) bool {
	have, ok := db.tables[table]
	for _, want := range columns {
		ok = ok && slices.ContainsFunc(have, func(c string) bool { return strings.EqualFold(c, want) })
	}
	return ok
}

// complete wants what kernels cannot be told without. All other tables and columns are
// optional.
func (db *database) complete() error {
	for table, column := range map[string]string{kernelTable: "start, end", stringTable: "id, value"} {
		if db.has(kernelTable) && !db.has(table, strings.Split(column, ", ")...) {
			found := "only " + strings.Join(db.tables[table], ", ")
			if !db.has(table) {
				found = "no such table"
			}
			return &input.Error{File: db.path, Position: "table " + table, Expected: "the columns " + column,
				Found: found, Try: exportAgain, Err: ErrDamaged}
		}
	}
	return nil
}

// look learns the largest row number of every table of events, the number of its rows in any
// export as the profiler wrote it, and what times are shifted by. That costs no scan.
//
// 'nsys export' shifts times on demand: to the clock of the host (--ts-normalize), whose time at
// the capture's zero the session table gives, or by any number (--ts-shift). The latter is only
// known roughly, but the same for all ranks, so that they stay aligned.
func (db *database) look(ctx context.Context, sessionUTC int64) error {
	db.lastRow = map[string]int64{}
	for _, table := range []string{kernelTable, callTable, rangeTable} {
		if err := db.each(ctx, []string{"max(0, ifnull(max(rowid), 0))"}, table,
			func(row []string) { db.lastRow[table] = whole(row[0]) }); db.has(table) && err != nil {
			return err
		}
	}
	for _, table := range []string{graphTable, kernelTable} {
		within, first := false, int64(0) // one of the first and last may be damaged
		for _, rest := range []string{" ORDER BY rowid DESC LIMIT 1", " LIMIT 1"} {
			err := db.rows(ctx, table, []string{"start"}, rest, func(row []string) {
				first = whole(row[0])
				within = within || first >= -TimeLimit && first <= TimeLimit
			})
			if err != nil {
				return err
			}
		}
		if since := first - sessionUTC; !within && sessionUTC > 0 && since >= 0 && since <= TimeLimit {
			db.base = sessionUTC
		} else if !within {
			db.base = first - first%TimeLimit
		}
	}
	return nil
}

// whole reads a whole number, 0 for anything else.
func whole(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// room is for how many rows of a table to make room: exact for an export as the
// profiler wrote it, and never more than its bytes can hold (a row of events has
// 20 columns or more, each at least a byte).
func (db *database) room(table string) int64 { return min(db.lastRow[table], db.size/20) }
