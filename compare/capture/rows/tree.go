package rows

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
)

// Pages of a table's tree, from https://www.sqlite.org/fileformat2.html section
// 1.6.
const (
	leafPage     = 0x0d
	leafHeader   = 8
	branchPage   = 0x05
	branchHeader = 12
	leastSpill   = 35 // a record that leaves fewer bytes of its page spills

	deepest = 12      // levels; more pages than a file can have need fewer
	longest = 1 << 20 // bytes of a record, more than any row of an export has
)

var errLast = errors.New("beyond the last row wanted")

// walker goes through the pages of a table's tree from left to right.
type walker struct {
	*pages
	*decoder
	ctx     context.Context
	rows    RowRange
	found   bool     // the first row is found: from here on every row is read
	buffers [][]byte // for the pages of each level
	rest    []byte   // a page of a spilled record
	record  []byte   // a spilled record
	visit   func(*Row) error
	seen    int64 // rows visited
}

// walk visits the rows as long as everything is plain, and returns how many it
// visited. errFallback says that there is more.
func (t *table) walk(ctx context.Context, path string, visit func(*Row) error) (seen int64, err error) {
	if !t.plain {
		return 0, errFallback
	}
	file, err := os.Open(path)
	if err != nil {
		return 0, errFallback
	}
	defer file.Close()
	pages, err := openPages(file)
	if err != nil {
		return 0, err
	}
	w := &walker{pages: pages, decoder: newDecoder(t), ctx: ctx, rows: t.Rows, rest: make([]byte, pages.size),
		visit: visit}
	if err = w.subtrees([]uint32{t.root}, 0); err == errLast {
		err = nil
	}
	return w.seen, err
}

// subtrees visits the rows below some pages, which are of one level.
func (w *walker) subtrees(roots []uint32, level int) error {
	if level == deepest {
		return errFallback
	}
	if level == len(w.buffers) {
		w.buffers = append(w.buffers, w.buffer())
	}
	for len(roots) > 0 {
		if w.ctx.Err() != nil {
			return errFallback // the connection is interrupted too, and says so
		}
		n, err := w.read(roots, w.buffers[level])
		if err != nil {
			return err
		}
		for i := range n {
			if err := w.page(w.buffers[level][i*w.size:][:w.size+slack], level); err != nil {
				return err
			}
		}
		roots = roots[n:]
	}
	return nil
}

// page visits the rows on a page or below it.
func (w *walker) page(page []byte, level int) error {
	cells := int(binary.BigEndian.Uint16(page[3:]))
	switch {
	case page[0] == leafPage && leafHeader+6*cells <= w.size && (cells > 0 || level == 0):
		return w.leaf(page, cells)
	case page[0] == branchPage && branchHeader+6*cells <= w.size && cells > 0:
		return w.branch(page, cells, level)
	}
	return errFallback
}

// branch visits the rows below a page: a child for each cell, which also holds
// the largest row number below that child, and one more child to the right. The
// first row is below the first child whose number is not smaller.
func (w *walker) branch(page []byte, cells, level int) error {
	children := make([]uint32, 0, cells+1)
	before := int64(0)
	for i := range cells {
		at := int(binary.BigEndian.Uint16(page[branchHeader+2*i:]))
		if at < branchHeader+2*cells || at > w.size-5 {
			return errFallback
		}
		child := binary.BigEndian.Uint32(page[at:])
		if !w.found {
			number, _ := varint(page[at+4:])
			if i > 0 && int64(number) <= before {
				return errFallback // numbers in disorder: fall back to SQLite
			}
			if before = int64(number); before < w.rows.First {
				continue
			}
		}
		children = append(children, child)
	}
	return w.subtrees(append(children, binary.BigEndian.Uint32(page[8:])), level+1)
}

// leaf visits the rows on a page.
func (w *walker) leaf(page []byte, cells int) error {
	i, err := w.start(page, cells)
	if err != nil {
		return err
	}
	for ; i < cells; i++ {
		number, at, length, err := w.cell(page, cells, i)
		if err != nil {
			return err
		}
		if number > w.rows.Last {
			return errLast
		}
		record := page[at:]
		if length > w.size-leastSpill {
			if record, err = w.spilled(page, at, length); err != nil {
				return err
			}
		} else if at+length > w.size {
			return errFallback
		}
		if err := w.decode(record, length); err != nil {
			return err
		}
		if err := w.visit(w.row); err != nil {
			return err
		}
		w.seen++
	}
	return nil
}

// start is the first cell of a leaf to visit.
func (w *walker) start(page []byte, cells int) (first int, err error) {
	if w.found {
		return 0, nil
	}
	w.found = true
	before := int64(0)
	for i := range cells {
		number, _, _, err := w.cell(page, cells, i)
		if err != nil || i > 0 && number <= before {
			return 0, errFallback
		}
		if before = number; number < w.rows.First {
			first = i + 1
		}
	}
	return first, nil
}

// cell is a cell of a leaf: its row's number, where on the page the record begins
// and how long it is.
func (w *walker) cell(page []byte, cells, i int) (number int64, at, length int, err error) {
	at = int(binary.BigEndian.Uint16(page[leafHeader+2*i:]))
	if at < leafHeader+2*cells || at > w.size-4 {
		return 0, 0, 0, errFallback
	}
	size, n := varint(page[at:])
	row, m := varint(page[at+n:])
	if at += n + m; size > longest || n > 4 || at > w.size {
		return 0, 0, 0, errFallback
	}
	return int64(row), at, int(size), nil
}

// spilled is a record too long for its page, which holds the record's beginning
// and the number of the page where it goes on; and so on.
func (w *walker) spilled(page []byte, at, length int) ([]byte, error) {
	least := (w.size-12)*32/255 - 23
	here := least + (length-least)%(w.size-4)
	if here > w.size-leastSpill {
		here = least
	}
	if at+here+4 > w.size {
		return nil, errFallback
	}
	record := append(w.record[:0], page[at:at+here]...)
	for next := page[at+here:]; len(record) < length; next = w.rest {
		if _, err := w.read([]uint32{binary.BigEndian.Uint32(next)}, w.rest); err != nil {
			return nil, err
		}
		record = append(record, w.rest[4:min(w.size, 4+length-len(record))]...)
	}
	w.record = append(record, make([]byte, slack)...)
	return w.record, nil
}
