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

// slack is what may be read behind a page: a varint or an integer that begins on it.
const slack = 16

// walker goes through the pages of a table's tree from left to right.
type walker struct {
	*table
	ctx   context.Context
	file  *os.File
	row   *Row
	size  int    // of a page, in bytes
	count uint32 // of pages, numbered from 1
	leaf  []byte // the page that is looked at
	visit func(*Row) error
	seen  int64 // rows visited
}

// walk visits the rows as long as everything is plain, and returns how many it
// visited. errFallback says that there is more.
func (t *table) walk(ctx context.Context, path string, visit func(*Row) error) (seen int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, errFallback
	}
	defer file.Close()
	w := &walker{table: t, ctx: ctx, file: file, row: t.newRow(), visit: visit}
	if !t.plain || !w.readHeader() {
		return 0, errFallback
	}
	err = w.subtree(t.root, 0)
	return w.seen, err
}

// readHeader learns the size and number of the pages from the file's header, and reports whether they are plain:
// https://www.sqlite.org/fileformat2.html section 1.3. Reserved bytes at their ends, left to extensions that encrypt
// or check pages, are not plain. Neither are pointer maps (auto_vacuum), which SQLite consults about long records, nor
// texts in UTF-16.
func (w *walker) readHeader() bool {
	head := make([]byte, 100)
	_, err := w.file.ReadAt(head, 0)
	version, reserved := head[19], head[20]
	number := func(at int) uint32 { return binary.BigEndian.Uint32(head[at:]) }
	maps, encoding := number(52), number(56)
	if w.size, w.count = int(binary.BigEndian.Uint16(head[16:])), number(28); w.size == 1 {
		w.size = 1 << 16
	}
	w.leaf = make([]byte, w.size+slack)
	return err == nil && w.size >= 512 && w.count > 0 && version <= 2 && reserved == 0 && maps == 0 && encoding == 1
}

// subtree visits the rows on a page or below it.
func (w *walker) subtree(root uint32, level int) error {
	if level == deepest || w.ctx.Err() != nil || // the connection is interrupted too, and says so
		root == 0 || root > w.count {
		return errFallback
	}
	if _, err := w.file.ReadAt(w.leaf[:w.size], (int64(root)-1)*int64(w.size)); err != nil {
		return errFallback
	}
	if w.Progress != nil {
		w.Progress(int64(w.size))
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
