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
	leastSpill   = 35 // a record that leaves fewer bytes of its page spills to others: it is left to SQLite

	deepest = 12 // levels; more pages than a file can have need fewer
)

// walker goes through the pages of a table's tree from left to right.
type walker struct {
	*pages
	*decoder
	ctx   context.Context
	leaf  []byte // the page that is looked at
	visit func(*Row) error
	seen  int64 // rows visited
	tell  func(bytes int64)
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
	w := &walker{pages: pages, decoder: newDecoder(t), ctx: ctx, leaf: make([]byte, pages.size+slack), visit: visit,
		tell: t.Progress}
	err = w.subtree(t.root, 0)
	return w.seen, err
}

// subtree visits the rows on a page or below it.
func (w *walker) subtree(root uint32, level int) error {
	if level == deepest || w.ctx.Err() != nil { // the connection is interrupted too, and says so
		return errFallback
	}
	if err := w.read(root, w.leaf); err != nil {
		return err
	}
	if w.tell != nil {
		w.tell(int64(w.size))
	}
	cells := int(binary.BigEndian.Uint16(w.leaf[3:]))
	switch kind := w.leaf[0]; {
	case kind == leafPage && leafHeader+6*cells <= w.size && (cells > 0 || level == 0):
		return w.rows(cells)
	case kind != branchPage || branchHeader+6*cells > w.size || cells == 0:
		return errFallback
	}
	children := make([]uint32, 0, cells+1) // one for each cell and one more to the right
	for i := range cells {
		at := int(binary.BigEndian.Uint16(w.leaf[branchHeader+2*i:]))
		if at < branchHeader+2*cells || at > w.size-5 {
			return errFallback
		}
		children = append(children, binary.BigEndian.Uint32(w.leaf[at:]))
	}
	for _, child := range append(children, binary.BigEndian.Uint32(w.leaf[8:])) {
		if err := w.subtree(child, level+1); err != nil {
			return err
		}
	}
	return nil
}

// rows visits the rows on the leaf, each a cell: the length of the record, the number of the
// row, the record.
func (w *walker) rows(cells int) error {
	for i := range cells {
		at := int(binary.BigEndian.Uint16(w.leaf[leafHeader+2*i:]))
		if at < leafHeader+2*cells || at > w.size-4 {
			return errFallback
		}
		size, n := varint(w.leaf[at:])
		_, m := varint(w.leaf[at+n:])
		if at += n + m; at > w.size || size > uint64(min(w.size-leastSpill, w.size-at)) {
			return errFallback
		}
		if err := w.decode(w.leaf[at:], int(size)); err != nil {
			return err
		}
		if err := w.visit(w.row); err != nil {
			return err
		}
		w.seen++
	}
	return nil
}
