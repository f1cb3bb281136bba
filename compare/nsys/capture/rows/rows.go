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
	"encoding/binary"
	"errors"
	"math"
	"os"
)

// Query names what to read of a table. A column that the table does not have
// reads as NULL.
type Query struct {
	Table    string
	Integers []string // columns of integers, each once, at most 64
	Text     string   // a column of text; "" reads none
	Rows     RowRange
}

// RowRange is a range of row numbers, both ends included.
type RowRange struct{ First, Last int64 }

// All is every row.
var All = RowRange{math.MinInt64, math.MaxInt64}

// Halves is every row in two ranges of as many rows each, where the rows of a
// table are numbered from 1 to last.
func Halves(last int64) (left, right RowRange) {
	return RowRange{math.MinInt64, last / 2}, RowRange{last/2 + 1, math.MaxInt64}
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

// Subtract takes a base from the i-th of the query's integers; NULL stays.
func (r *Row) Subtract(i int, base int64) {
	if !r.Null(i) {
		r.integers[i] -= base
	}
}

// Text is the query's text; ok is false for NULL. Its bytes belong to the row and
// need not be UTF-8.
func (r *Row) Text() (text []byte, ok bool) { return r.text, r.hasText }

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

// pages are those of a database file, numbered from 1.
type pages struct {
	file  *os.File
	size  int // of each, in bytes
	count uint32
}

const (
	// readAhead is how many bytes of pages that follow each other are read at once.
	readAhead = 128 << 10
	// slack is what may be read behind a page: a varint or an integer that begins on
	// it.
	slack = 16
	// lockByte is on a page that SQLite never uses.
	lockByte = 1 << 30
)

// openPages learns the size and number of the pages from the file's header:
// https://www.sqlite.org/fileformat2.html section 1.3. Reserved bytes at their
// ends, left to extensions that encrypt or check pages, are not plain. Neither are
// pointer maps (auto_vacuum), which SQLite consults about long records, nor texts
// in UTF-16.
func openPages(file *os.File) (*pages, error) {
	head := make([]byte, 100)
	if _, err := file.ReadAt(head, 0); err != nil {
		return nil, errFallback
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errFallback
	}
	size, version, reserved := int(binary.BigEndian.Uint16(head[16:])), head[19], head[20]
	count, maps, encoding := binary.BigEndian.Uint32(head[28:]), binary.BigEndian.Uint32(head[52:]),
		binary.BigEndian.Uint32(head[56:])
	if size == 1 {
		size = 1 << 16
	}
	if size < 512 || size&(size-1) != 0 || version > 2 || reserved != 0 || maps != 0 || encoding != 1 {
		return nil, errFallback
	}
	if there := info.Size() / int64(size); count == 0 || int64(count) > there {
		count = uint32(min(there, 1<<32-2))
	}
	return &pages{file: file, size: size, count: count}, nil
}

// buffer has room for the pages that are read at once, and slack.
func (p *pages) buffer() []byte { return make([]byte, max(readAhead, p.size)+slack) }

// read fills a buffer with the first of the pages of a list and those of them that
// follow it in the file too. It returns how many these are.
func (p *pages) read(list []uint32, buffer []byte) (n int, err error) {
	most := min(len(list), len(buffer)/p.size)
	for n = 1; n < most && list[n] == list[0]+uint32(n); n++ {
	}
	begin := (int64(list[0]) - 1) * int64(p.size)
	end := begin + int64(n)*int64(p.size)
	if begin < 0 || end > int64(p.count)*int64(p.size) || begin <= lockByte && lockByte < end {
		return 0, errFallback
	}
	if _, err := p.file.ReadAt(buffer[:end-begin], begin); err != nil {
		return 0, errFallback
	}
	return n, nil
}
