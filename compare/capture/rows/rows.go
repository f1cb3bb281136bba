// Package rows reads columns of a large SQLite table, row by row in the order of
// the row numbers.
//
// Stepping through a table with SQLite's engine costs several times what its
// bytes cost. So the rows of a plain table are decoded from the pages of the file
// itself, whose format is public and stable
// (https://www.sqlite.org/fileformat2.html). SQLite still says what the table is:
// its root page, its columns and their order. And SQLite takes over, from the row
// that was reached, wherever the file holds anything but the plain case: another
// encoding, a value of another kind than asked for, a page that contradicts
// itself. What a caller sees, rows and errors, is what SQLite gives.
//
// The file is only ever read. Nothing here knows what the tables mean.
package rows

import (
	"context"
	"database/sql"
	"errors"
)

// Query names what to read of a table. A column that the table does not have
// reads as NULL.
type Query struct {
	Table    string
	Integers []string          // columns of integers, each once, at most 64
	Text     string            // a column of text; "" reads none
	Progress func(bytes int64) // is told of pages that are read; nil tells nobody
}

// Row is one row of a query. It is overwritten by the next one.
type Row struct {
	integers []int64
	null     uint64 // a bit for each of integers
	text     []byte
	hasText  bool
}

// Int is the i-th of the query's integers, as SQLite converts it. NULL is 0.
func (r *Row) Int(i int) int64 { return r.integers[i] }

// Null reports whether the i-th of the query's integers is NULL.
func (r *Row) Null(i int) bool { return r.null>>i&1 != 0 }

// Text is the query's text; ok is false for NULL. Its bytes belong to the row and
// need not be UTF-8.
func (r *Row) Text() (text []byte, ok bool) { return r.text, r.hasText }

// clear makes all values NULL.
func (r *Row) clear() {
	clear(r.integers)
	r.null, r.text, r.hasText = ^uint64(0), nil, false
}

// set is the i-th integer.
func (r *Row) set(i int, v int64) {
	r.integers[i] = v
	r.null &^= 1 << i
}

// errFallback is anything that is left to SQLite.
var errFallback = errors.New("not the plain case")

// Each hands the rows to visit, one after the other, and returns the first error
// of SQLite or of visit. db has the file at path open; ctx interrupts both.
func (q Query) Each(ctx context.Context, db *sql.DB, path string, visit func(*Row) error) error {
	t, err := q.resolve(ctx, db)
	if err != nil {
		return err
	}
	seen, err := t.walk(ctx, path, visit)
	if errors.Is(err, errFallback) {
		return t.step(ctx, db, seen, visit)
	}
	return err
}
