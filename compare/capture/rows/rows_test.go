package rows

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
	_ "modernc.org/sqlite"
)

// makeDatabase runs scripts on a new database, each in a transaction, and returns its
// path. A PRAGMA is a script of its own.
func makeDatabase(t testing.TB, script ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made.sqlite")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	db := require.Value(sql.Open("sqlite", path+"?_pragma=synchronous(off)"))
	db.SetMaxOpenConns(1) // what PRAGMA sets is of a connection
	for _, sql := range script {
		if !strings.HasPrefix(sql, "PRAGMA") {
			sql = "BEGIN;\n" + sql + ";\nCOMMIT"
		}
		if _, err := db.Exec(sql); err != nil {
			t.Fatalf("%.2000v", err)
		}
	}
	require.NoError(t, db.Close())
	return path
}

// open opens a database as exports are opened.
func open(t testing.TB, path string) *sql.DB {
	t.Helper()
	path = require.Value(filepath.Abs(path))
	uri := url.URL{Scheme: "file", Path: path, RawQuery: "mode=ro&immutable=1"}
	db := require.Value(sql.Open("sqlite", uri.String()))
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// found is what one way of reading gives.
type found struct {
	rows []string
	err  error
}

// errTooMany ends the reading of a damaged tree whose pages point to each other.
var errTooMany = errors.New("more rows than any test makes")

func (f *found) visit(row *Row) error {
	var b []byte
	for i := range row.integers {
		if row.Null(i) {
			b = append(b, "NULL "...)
		}
		b = append(strconv.AppendInt(b, row.Int(i), 10), ' ')
	}
	if text, ok := row.Text(); ok {
		b = append(append(b, '\''), text...)
	}
	if f.rows = append(f.rows, string(b)); len(f.rows) > 20_000 {
		return errTooMany
	}
	return nil
}

// bySQLite is the reference: SQLite alone.
func bySQLite(db *sql.DB, q Query) (f found) {
	t, err := q.resolve(context.Background(), db)
	if err != nil {
		return found{err: err}
	}
	f.err = t.step(context.Background(), db, 0, f.visit)
	return f
}

// fromPages reads without SQLite as far as that goes.
func fromPages(db *sql.DB, path string, q Query) (f found) {
	t, err := q.resolve(context.Background(), db)
	if err != nil {
		return found{err: err}
	}
	_, f.err = t.walk(context.Background(), path, f.visit)
	return f
}

func each(db *sql.DB, path string, q Query) (f found) {
	f.err = q.Each(context.Background(), db, path, f.visit)
	return f
}

// checkSame demands the same rows, unless both ways end in an error.
func checkSame(t testing.TB, what string, have, want found) {
	t.Helper()
	if (have.err == nil) != (want.err == nil) {
		t.Fatalf("%s: want error %v, have %v", what, want.err, have.err)
	}
	if want.err != nil {
		return
	}
	for i := range max(len(want.rows), len(have.rows)) {
		switch {
		case i >= len(have.rows):
			t.Fatalf("%s: want %d rows, have %d", what, len(want.rows), i)
		case i >= len(want.rows):
			t.Fatalf("%s: want %d rows, have %d; the next is %.200q", what, i, len(have.rows), have.rows[i])
		case want.rows[i] != have.rows[i]:
			t.Fatalf("%s: row %d: want %.200q, have %.200q", what, i, want.rows[i], have.rows[i])
		}
	}
}

// checkPlain demands that a query needs SQLite for no row, and gives what it gives.
func checkPlain(t testing.TB, db *sql.DB, path string, q Query) {
	t.Helper()
	want := bySQLite(db, q)
	if want.err != nil {
		t.Fatal(want.err)
	}
	checkSame(t, q.Table, fromPages(db, path, q), want)
	checkSame(t, q.Table, each(db, path, q), want)
}

// Every table of every capture is read without SQLite, and as SQLite does.
func TestCaptures(t *testing.T) {
	paths, err := filepath.Glob("../../../testdata/*/*.sqlite")
	if err != nil || len(paths) < 15 {
		t.Fatalf("have %d captures: %v", len(paths), err)
	}
	if testing.Short() {
		paths = paths[:2]
	}
	for i, path := range paths {
		if i > 0 && i < len(paths)-1 && filepath.Dir(path) == filepath.Dir(paths[i-1]) &&
			filepath.Dir(path) == filepath.Dir(paths[i+1]) {
			continue // the ranks of one run, by one version of one program, have pages of the same kinds
		}
		db := open(t, path)
		tables, err := db.Query(`SELECT m.name, group_concat(CASE c.type WHEN 'INTEGER' THEN c.name END),
			max(CASE c.type WHEN 'TEXT' THEN c.name ELSE '' END)
			FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND c.pk = 0 GROUP BY m.name`)
		require.NoError(t, err)
		for tables.Next() {
			var q Query
			var integers sql.NullString
			require.NoError(t, tables.Scan(&q.Table, &integers, &q.Text))
			q.Integers = strings.Split(integers.String, ",")
			checkPlain(t, db, path, q)
		}
		require.NoError(t, tables.Err())
	}
}

// edges are the integers at which their stored size changes, and their
// neighbors.
func edges() []int64 {
	list := []int64{0, 1, 2, -1, math.MinInt64, math.MaxInt64}
	for _, bits := range []int{7, 15, 23, 31, 47} {
		for _, d := range []int64{-1, 0, 1} {
			list = append(list, int64(1)<<bits+d, -int64(1)<<bits+d)
		}
	}
	return list
}

// scribble is a script that makes table t of random rows: a and b are integers, s
// is text, x, y and z are between them and hold anything. c is added when half of
// the rows are there, and some rows are deleted again.
func scribble(rng *rand.Rand, page, rows int) string {
	numbers := edges()
	integer := func() string {
		switch rng.IntN(8) {
		case 0:
			return "NULL"
		case 1:
			return "-9223372036854775808"
		case 2:
			return fmt.Sprint(rng.Int64() >> rng.IntN(64))
		}
		return fmt.Sprint(numbers[rng.IntN(len(numbers))])
	}
	text := func() string {
		switch n := rng.IntN(40); {
		case n == 0:
			return "NULL"
		case n < 3:
			return fmt.Sprintf("CAST(zeroblob(%d) AS TEXT)", rng.IntN(3*page))
		case n == 3: // on either side of what fits a page
			return fmt.Sprintf("'%s'", strings.Repeat("p", max(0, page-80+rng.IntN(80))))
		}
		return fmt.Sprintf("'%s'", strings.Repeat("äbc", rng.IntN(20)))
	}
	anything := func() string {
		return []string{integer(), text(), "1.5", "zeroblob(9)", "-0.0"}[rng.IntN(5)]
	}
	var b strings.Builder
	insert := func(n int, columns func() []string) {
		for range n {
			fmt.Fprintf(&b, "INSERT INTO t VALUES (%s);\n", strings.Join(columns(), ", "))
		}
	}
	old := func() []string {
		return []string{anything(), integer(), anything(), text(), integer(), anything()}
	}
	b.WriteString("CREATE TABLE t (x, a INTEGER, y, s TEXT, b INTEGER, z);\n")
	insert(rows/2, old)
	b.WriteString("ALTER TABLE t ADD COLUMN c INTEGER;\n")
	insert(rows-rows/2, func() []string { return append(old(), integer()) })
	fmt.Fprintf(&b, "DELETE FROM t WHERE rowid %% 7 = 3 OR rowid BETWEEN %d AND %d;\n", rows/3,
		rows/3+rng.IntN(rows/3+1))
	b.WriteString("INSERT INTO t (rowid, a) VALUES (9223372036854775807, 5), (-3, 6), (-9223372036854775808, 7);")
	return b.String()
}

var scribbled = Query{Table: "T", Integers: []string{"a", "missing", "B", "c"}, Text: "s"}

// Tables of one page to three levels, in pages of every size.
func TestPageSizes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for page := 512; page <= 65536; page *= 2 {
		for _, rows := range []int{1, 20, 500 + 1000*512/page} {
			path := makeDatabase(t, fmt.Sprintf("PRAGMA page_size = %d", page), scribble(rng, page, rows))
			db := open(t, path)
			checkSame(t, path, each(db, path, scribbled), bySQLite(db, scribbled))
		}
	}
}

// What is not the plain case is left to SQLite, from the row on where it begins.
func TestLeftToSQLite(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	some := scribble(rng, 1024, 300)
	numbered := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO t (a, s) SELECT i, 'x' || i FROM n;"
	for _, c := range []struct {
		what   string
		script []string
		plain  int // rows that need no SQLite, −1 for all
	}{
		{"plain", []string{"CREATE TABLE t (a INTEGER, s TEXT); " + numbered}, -1},
		{"a text longer than a page", []string{"CREATE TABLE t (a INTEGER, s TEXT); INSERT INTO t VALUES (1, 'x'), " +
			"(2, CAST(zeroblob(5000) AS TEXT)), (3, 'y');"}, 1},
		{"in UTF-16", []string{"PRAGMA encoding = 'UTF-16le'", some}, 0},
		{"with a write-ahead log, all of it in the file", []string{"PRAGMA journal_mode = WAL",
			"CREATE TABLE t (a INTEGER, s TEXT); " + numbered}, -1},
		{"with pointer maps", []string{"PRAGMA auto_vacuum = 1", some}, 0},
		{"without row numbers",
			[]string{"CREATE TABLE t (a INTEGER PRIMARY KEY, s TEXT) WITHOUT ROWID; INSERT INTO t VALUES (1, 'x');"},
			0},
		{"a key that is the row number", []string{"CREATE TABLE t (a INTEGER PRIMARY KEY, s TEXT); " + numbered}, 0},
		{"a column called rowid",
			[]string{"CREATE TABLE t (a INTEGER, s TEXT, rowid TEXT); INSERT INTO t VALUES (1, 'x', 'y');"}, 0},
		{"generated columns",
			[]string{"CREATE TABLE t (x INTEGER AS (a + 1), a INTEGER, s TEXT AS (a || 'x') STORED); INSERT INTO t VALUES (1);"}, 0},
		{"a column of reals",
			[]string{"CREATE TABLE t (a REAL, s TEXT); INSERT INTO t VALUES (3, 'x'), (4.5, 'y'), (9007199254740993, 'z');"}, 0},
		{"a real among integers",
			[]string{"CREATE TABLE t (a INTEGER, s TEXT); INSERT INTO t VALUES (1, 'x'), (1.5, 'y'), (-1e300, 'z');"},
			1},
		{"a text among integers", []string{"CREATE TABLE t (a INTEGER, s TEXT); " + numbered +
			"UPDATE t SET a = '12 o''clock' WHERE rowid = 4000;"}, 3999},
		{"a blob among texts", []string{"CREATE TABLE t (a INTEGER, s TEXT); " + numbered +
			"UPDATE t SET s = x'00ff' WHERE rowid = 4000;"}, 3999},
		{"an integer among texts", []string{"CREATE TABLE t (a INTEGER, s); INSERT INTO t VALUES (1, 'x'), (2, 17);"},
			0},
		{"a column added", []string{"CREATE TABLE t (a INTEGER, s TEXT); " + numbered +
			"ALTER TABLE t ADD COLUMN c INTEGER; " + strings.Replace(numbered, "(a, s)", "(a, c)", 1)}, 0},
		{"an index that holds all columns", []string{"CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER, s TEXT); " +
			numbered + "UPDATE t SET a = -a; CREATE INDEX i ON t (a, b, c, s); ANALYZE;"}, -1},
		{"a name to quote", []string{`CREATE TABLE t (a INTEGER, s TEXT, "m""n" INTEGER); ` + numbered}, -1},
	} {
		t.Run(c.what, func(t *testing.T) {
			path := makeDatabase(t, c.script...)
			db, q := open(t, path), scribbled
			want, have := bySQLite(db, q), fromPages(db, path, q)
			checkSame(t, c.what, each(db, path, q), want)
			switch {
			case c.plain < 0 && (have.err != nil || len(have.rows) == 0):
				t.Errorf("want all rows, have %d and %v", len(have.rows), have.err)
			case c.plain >= 0 && (!errors.Is(have.err, errFallback) || len(have.rows) != c.plain):
				t.Errorf("want %d rows and %v, have %d and %v", c.plain, errFallback, len(have.rows), have.err)
			}
		})
	}
}

// A visitor's error ends the reading, with SQLite as without: x needs it. A context that ends does
// so too, with SQLite some rows later.
func TestStopped(t *testing.T) {
	path := makeDatabase(t, "PRAGMA page_size = 512", "CREATE TABLE t (a INTEGER, s TEXT, x); WITH RECURSIVE n(i) AS "+
		"(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO t SELECT i, 'x' || i, i + 0.5 FROM n")
	enough := errors.New("enough")
	for _, q := range []Query{scribbled, {Table: "t", Integers: []string{"x"}}} {
		for _, want := range []error{enough, context.Canceled} {
			if want != enough && q.Text == "" {
				continue
			}
			ctx, cancel := context.WithCancel(context.Background())
			rows := 0
			err := q.Each(ctx, open(t, path), path, func(*Row) error {
				if rows++; rows < 10 {
					return nil
				} else if want == enough {
					return enough
				}
				cancel()
				return nil
			})
			if cancel(); !errors.Is(err, want) || rows > 1000 || want == enough && rows != 10 {
				t.Errorf("want %v, have %v after %d rows", want, err, rows)
			}
		}
	}
}

// Records written by hand: the header's length, the types, the values.
func TestRecords(t *testing.T) {
	asked := &table{Query: Query{Integers: []string{"a", "none", "b"}, Text: "s"},
		columns: []column{{"a", 0}, {"x", unread}, {"s", toText}, {"b", 2}}} // and y, which is not wanted
	w := &walker{table: asked, row: asked.newRow()}
	for _, c := range []struct{ record, want string }{
		{"\x06\x01\x00\x0f\x08\x00\xfb1", "-5 NULL 0 0 '1"},
		{"\x05\x01\x00\x0f\x02\xfb1\x01\x02", "-5 NULL 0 258 '1"}, // older than y
		{"\x04\x01\x00\x0f\xfb1", ""},                             // and than b
		{"\x05\x06\x07\x0d\x09\x80\x00\x00\x00\x00\x00\x00\x00reality ", "-9223372036854775808 NULL 0 1 '"},
		{"\x06\x00\x80\x0e\x00\x03b\xff\xff\xfe", "NULL 0 NULL 0 -2 "}, // a type in two bytes
		{"\x05\x01\x00\x0f\x0e\xfb1b", ""},                             // a blob among integers
		{"\x04\x01\x00\x0f\xfb1+", ""},                                 // a byte too many
		{"\x04\x01\x00\x0f\xfb", ""},                                   // and one too few
		{"\x05\x01\x00\x0f\x87\xfb1", ""},                              // the header ends within a type
		{"\x05\x01\x00\x0f\x80\x01\x00\x02", ""},                       // and would go on as a value
		{"\x00", ""}, {"\x02", ""}, {"", ""},
		{"\x81\x80\x00", ""},
		{"\x05\x01\x00\x0f\x0a\xfb1", ""}, // a type that no file has
	} {
		var have found
		err := w.decode([]byte(c.record+strings.Repeat("\xff", slack)), len(c.record))
		if err == nil {
			_ = have.visit(w.row)
		}
		if (err == nil) != (c.want != "") || err == nil && have.rows[0] != c.want {
			t.Errorf("%x: want %q, have %q and %v", c.record, c.want, have.rows, err)
		}
	}
}
