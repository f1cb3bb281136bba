package rows

import (
	"bytes"
	"encoding/binary"
)

// decoder takes the wanted columns out of records. A record is a header, which
// begins with its own length and gives the type of each column's value, and then
// the values. Source: https://www.sqlite.org/fileformat2.html section 2.1.
//
// Some hundred different headers serve millions of records: what one says is kept
// for the next record that has the same.
type decoder struct {
	row     *Row
	columns []column // up to the last one wanted
	layouts [1 << layoutBits]layout
}

const layoutBits = 8

// layout is what a header says of the wanted columns.
type layout struct {
	header    []byte
	fields    []field // of the row's integers
	null      uint64  // which of them are NULL
	textBegin int
	textEnd   int
	hasText   bool
	length    int  // of the record up to the last wanted column
	whole     bool // the record ends there
}

// field is how to read an integer: the 8 bytes at a place, less the bits that
// belong to what follows, where keep is −1; and plus where it is 0.
type field struct {
	at         uint32
	drop       uint8
	keep, plus int8
}

// The types of values: NULL, integers of 1, 2, 3, 4, 6 and 8 bytes, reals, the
// integers 0 and 1; from 12 on, even types are blobs and odd ones texts.
const (
	typeNull  = 0
	typeLong  = 6
	typeZero  = 8
	typeOne   = 9
	typeBlob  = 12
	typeText  = 13
	bitsOfInt = 64
)

// sizes are the bytes of the values of types below typeBlob.
var sizes = [typeBlob]int{0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0}

func newDecoder(t *table) *decoder {
	d := &decoder{row: t.newRow()}
	for i, c := range t.columns {
		if c.to != unread {
			d.columns = t.columns[:i+1]
		}
	}
	return d
}

// decode reads a record of a length into the row. There are slack bytes behind it.
func (d *decoder) decode(record []byte, length int) error {
	size, n := varint(record)
	if n > 2 || size < uint64(n) || size > uint64(length) {
		return errFallback
	}
	header := record[:size]
	l := &d.layouts[hash(header)]
	if !bytes.Equal(l.header, header) {
		if err := l.learn(record, n, int(size), d); err != nil {
			return err
		}
	}
	if length < l.length || l.whole && length > l.length {
		return errFallback
	}
	row := d.row
	for i := range row.integers {
		f := &l.fields[i]
		v := int64(binary.BigEndian.Uint64(record[f.at:])) >> (f.drop % bitsOfInt)
		row.integers[i] = v&int64(f.keep) + int64(f.plus)
	}
	row.null, row.text, row.hasText = l.null, record[l.textBegin:l.textEnd], l.hasText
	return nil
}

// hash spreads headers over the layouts.
func hash(header []byte) (h uint64) {
	const spread = 0x9E3779B97F4A7C15 // 2^64 over the golden ratio
	for ; len(header) >= 8; header = header[8:] {
		h = (h ^ binary.LittleEndian.Uint64(header)) * spread
	}
	for _, b := range header {
		h = (h ^ uint64(b)) * spread
	}
	return h >> (64 - layoutBits)
}

// learn follows the header of a record, in which types stand from at to end.
func (l *layout) learn(record []byte, at, end int, d *decoder) error {
	*l = layout{header: l.header[:0], fields: append(l.fields[:0], make([]field, len(d.row.integers))...),
		null: ^uint64(0), length: end}
	header := record[:end]
	for _, c := range d.columns {
		if at == end { // the row is older than the column
			if c.to != unread && c.constant {
				return errFallback
			}
			continue
		}
		kind, n := varint(record[at:])
		if at += n; n > 4 || at > end {
			return errFallback
		}
		begin := l.length
		if kind < typeBlob {
			l.length += sizes[kind]
		} else {
			l.length += int(kind-typeBlob) / 2
		}
		if c.to == unread {
			continue
		}
		if !l.place(c.to, kind, begin) {
			return errFallback
		}
	}
	l.whole = at == end
	l.header = append(l.header, header...)
	return nil
}

// place says where a column's value is. It is false for a value of another type
// than is asked for, which SQLite converts.
func (l *layout) place(to int, kind uint64, begin int) bool {
	switch {
	case kind == typeNull:
		return true
	case to == toText:
		l.textBegin, l.textEnd, l.hasText = begin, l.length, true
		return kind >= typeText && kind%2 == 1
	case kind <= typeLong:
		l.fields[to] = field{at: uint32(begin), drop: uint8(bitsOfInt - 8*sizes[kind]), keep: -1}
	case kind == typeZero || kind == typeOne:
		l.fields[to].plus = int8(kind - typeZero)
	default:
		return false
	}
	l.null &^= 1 << to
	return true
}

// varint reads an integer of 1 to 9 bytes: 7 bits of each, and all 8 of the ninth.
func varint(b []byte) (v uint64, n int) {
	for n < 8 {
		v = v<<7 | uint64(b[n]&0x7f)
		n++
		if b[n-1] < 0x80 {
			return v, n
		}
	}
	return v<<8 | uint64(b[8]), 9
}
