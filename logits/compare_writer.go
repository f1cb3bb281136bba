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

// compareWriter compares what is written with a file instead of writing it: an
// entryWriter checks an entry with it. The first byte that differs, or is not there,
// is an ErrDamaged.
type compareWriter struct {
	file io.ReaderAt
	read []byte // as much of it as is compared at a time
}

func newCompareWriter(file io.ReaderAt) *compareWriter {
	return &compareWriter{file: file, read: make([]byte, chunkBytes)}
}

// WriteAt reads as many bytes of the file and compares them.
func (c *compareWriter) WriteAt(entry []byte, at int64) (equal int, err error) {
	for equal < len(entry) {
		want := entry[equal:min(len(entry), equal+len(c.read))]
		n, err := c.file.ReadAt(c.read[:len(want)], at+int64(equal))
		if !bytes.Equal(c.read[:n], want[:n]) {
			i := 0
			for c.read[i] == want[i] {
				i++
			}
			return equal + i, fmt.Errorf("%w: byte %d: want 0x%02x, have 0x%02x", ErrDamaged, at+int64(equal+i),
				want[i], c.read[i])
		}
		equal += n
		switch {
		case n == len(want):
		case errors.Is(err, io.EOF):
			return equal, fmt.Errorf("%w: byte %d: want 0x%02x, have the end of the file", ErrDamaged, at+int64(equal),
				want[n])
		default:
			return equal, err
		}
	}
	return equal, nil
}
