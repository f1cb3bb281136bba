package logits

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
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

// difference is the first byte of a file that is not the one to be written. It is an
// ErrDamaged.
type difference struct {
	at         int64
	want, have string
}

func (d *difference) Error() string {
	return fmt.Sprintf("%v: byte %d: want %s, have %s", ErrDamaged, d.at, d.want, d.have)
}

func (d *difference) Unwrap() error { return ErrDamaged }

// compareWriter compares what is written with a file instead of writing it: an
// entryWriter checks an entry with it.
type compareWriter struct {
	file io.ReaderAt
	read []byte
}

func newCompareWriter(file io.ReaderAt) *compareWriter { return &compareWriter{file: file} }

// WriteAt reads as many bytes of the file and compares them.
func (c *compareWriter) WriteAt(entry []byte, at int64) (int, error) {
	c.read = slices.Grow(c.read[:0], len(entry))[:len(entry)]
	n, err := c.file.ReadAt(c.read, at)
	if !bytes.Equal(c.read[:n], entry[:n]) {
		i := 0
		for c.read[i] == entry[i] {
			i++
		}
		return i, &difference{at + int64(i), fmt.Sprintf("0x%02x", entry[i]), fmt.Sprintf("0x%02x", c.read[i])}
	}
	switch {
	case n == len(entry):
		return n, nil
	case errors.Is(err, io.EOF):
		return n, &difference{at + int64(n), fmt.Sprintf("0x%02x", entry[n]), "the end of the file"}
	}
	return n, err
}
