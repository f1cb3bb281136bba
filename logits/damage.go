package logits

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// ErrDamaged is wrapped by the errors about files that stand in the place of an
// entry and are not that entry.
var ErrDamaged = errors.New("damaged")

// damage words why the file of an entry could not be taken: it is damaged, unless
// it was the system that would not read it.
func damage(path string, err error) error {
	if system := new(fs.PathError); err == nil || errors.As(err, &system) {
		return err
	}
	return fmt.Errorf("entry %q is %w: %s", path, ErrDamaged, fault(err))
}

// matcher is a file that is not written but held against what would be: a maker
// proves an entry with it as it makes one. The first byte that differs, or is not
// there, is an ErrDamaged.
type matcher struct {
	file io.ReaderAt
	read []byte // as much of it as is compared at a time
}

func newMatcher(file io.ReaderAt) *matcher {
	return &matcher{file: file, read: make([]byte, blockBytes)}
}

// WriteAt reads as many bytes of the file and compares them.
func (m *matcher) WriteAt(entry []byte, at int64) (matched int, err error) {
	for matched < len(entry) {
		want := entry[matched:min(len(entry), matched+len(m.read))]
		n, err := m.file.ReadAt(m.read[:len(want)], at+int64(matched))
		if !bytes.Equal(m.read[:n], want[:n]) {
			i := 0
			for m.read[i] == want[i] {
				i++
			}
			return matched + i, fmt.Errorf("%w: byte %d: want 0x%02x, found 0x%02x", ErrDamaged, at+int64(matched+i), want[i], m.read[i])
		}
		matched += n
		switch {
		case n == len(want):
		case errors.Is(err, io.EOF):
			return matched, fmt.Errorf("%w: byte %d: want 0x%02x, found the end of the file", ErrDamaged, at+int64(matched), want[n])
		default:
			return matched, err
		}
	}
	return matched, nil
}
