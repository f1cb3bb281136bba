package rows

import (
	"encoding/binary"
	"os"
)

// pages are the pages of a database file, numbered from 1.
type pages struct {
	file  *os.File
	size  int // of each, in bytes
	count uint32
}

// slack is what may be read behind a page: a varint or an integer that begins on it.
const slack = 16

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
	size, version, reserved := int(binary.BigEndian.Uint16(head[16:])), head[19], head[20]
	number := func(at int) uint32 { return binary.BigEndian.Uint32(head[at:]) }
	count, maps, encoding := number(28), number(52), number(56)
	if size == 1 {
		size = 1 << 16
	}
	if size < 512 || count == 0 || version > 2 || reserved != 0 || maps != 0 || encoding != 1 {
		return nil, errFallback
	}
	return &pages{file: file, size: size, count: count}, nil
}

// read fills a buffer with a page.
func (p *pages) read(number uint32, buffer []byte) error {
	if number == 0 || number > p.count {
		return errFallback
	}
	if _, err := p.file.ReadAt(buffer[:p.size], (int64(number)-1)*int64(p.size)); err != nil {
		return errFallback
	}
	return nil
}
