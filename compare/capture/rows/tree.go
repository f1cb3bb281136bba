package rows

import (
	"context"
	"encoding/binary"
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

// walker goes through the pages of a table's tree from left to right.
type walker struct {
	*pages
	*decoder
	ctx     context.Context
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
	w := &walker{pages: pages, decoder: newDecoder(t), ctx: ctx, rest: make([]byte, pages.size), visit: visit}
	err = w.subtrees([]uint32{t.root}, 0)
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

// branch visits the rows below a page: a child for each cell and one more to the right.
func (w *walker) branch(page []byte, cells, level int) error {
	children := make([]uint32, 0, cells+1)
	for i := range cells {
		at := int(binary.BigEndian.Uint16(page[branchHeader+2*i:]))
		if at < branchHeader+2*cells || at > w.size-5 {
			return errFallback
		}
		children = append(children, binary.BigEndian.Uint32(page[at:]))
	}
	return w.subtrees(append(children, binary.BigEndian.Uint32(page[8:])), level+1)
}

// leaf visits the rows on a page.
func (w *walker) leaf(page []byte, cells int) error {
	for i := range cells {
		at, length, err := w.cell(page, cells, i)
		if err != nil {
			return err
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

// cell gives where on a leaf the record of a cell begins and how long it is, behind its
// length and its row's number.
func (w *walker) cell(page []byte, cells, i int) (at, length int, err error) {
	at = int(binary.BigEndian.Uint16(page[leafHeader+2*i:]))
	if at < leafHeader+2*cells || at > w.size-4 {
		return 0, 0, errFallback
	}
	size, n := varint(page[at:])
	_, m := varint(page[at+n:])
	if at += n + m; size > longest || n > 4 || at > w.size {
		return 0, 0, errFallback
	}
	return at, int(size), nil
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
