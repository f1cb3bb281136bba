package rows

import (
	"encoding/binary"
	"os"
)

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
