package rows

import "encoding/binary"

// The types of values: NULL, integers of 1, 2, 3, 4, 6 and 8 bytes, reals, the
// integers 0 and 1; from 12 on, even types are blobs and odd ones texts.
const (
	typeNull = 0
	typeLong = 6
	typeZero = 8
	typeOne  = 9
	typeBlob = 12
	typeText = 13
)

// sizes are the bytes of the values of types whose number takes one byte.
var sizes = func() (list [0x80]int) {
	copy(list[:], []int{0, 1, 2, 3, 4, 6, 8, 8})
	for kind := typeBlob; kind < len(list); kind++ {
		list[kind] = (kind - typeBlob) / 2
	}
	return list
}()

// drops are the bits that belong to what follows an integer, by type, when 8 bytes are read.
var drops = [typeLong + 1]uint{0, 56, 48, 40, 32, 16, 0}

// decode takes the wanted columns out of a record of a length into the row. A record is a header, which begins with its
// own length and gives the type of each column's value, and then the values. There are slack bytes behind it. Source:
// https://www.sqlite.org/fileformat2.html section 2.1.
func (w *walker) decode(record []byte, length int) error {
	size, at := varint(record)
	if at > 2 || size < uint64(at) || size > uint64(length) {
		return errFallback
	}
	end := int(size) // of the header
	row := w.row
	row.clear()
	value := end // where the next one begins
	for _, c := range w.columns {
		if at == end { // the row is older than the column
			return errFallback
		}
		kind := uint64(record[at])
		begin := value
		if at++; kind < uint64(len(sizes)) {
			value += sizes[kind]
		} else {
			long, n := varint(record[at-1:])
			if at += n - 1; n > 4 || at > end {
				return errFallback
			}
			kind, value = long, value+int(long-typeBlob)/2
		}
		switch {
		case c.to == unread:
			continue
		case c.to >= 0 && kind-1 < typeLong && value <= length: // mostly
			row.set(c.to, int64(binary.BigEndian.Uint64(record[begin:]))>>(drops[kind]%64))
			continue
		case value > length || !row.take(c.to, kind, record[begin:], value-begin):
			return errFallback
		}
	}
	if value > length || at == end && value < length {
		return errFallback
	}
	return nil
}

// take sets a column to NULL, 0, 1, or the text of a size at the beginning of b. It is false for a
// value of another type than is asked for, which SQLite converts.
func (r *Row) take(to int, kind uint64, b []byte, size int) bool {
	switch {
	case kind == typeNull:
	case to == toText:
		r.text, r.hasText = b[:size], true
		return kind >= typeText && kind%2 == 1
	case kind == typeZero || kind == typeOne:
		r.set(to, int64(kind-typeZero))
	default:
		return false
	}
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
