package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// ErrTruncated is wrapped by the errors about files that end too early.
var ErrTruncated = errors.New("the end of the file")

const (
	// lengthBytes is the header length in front of everything.
	lengthBytes = 8
	// maxHeader bounds the header, as the reference reader does
	// (safetensors/src/tensor.rs, MAX_HEADER_SIZE).
	maxHeader = 100_000_000
)

// File is an opened safetensors file: its header is read and checked, its
// tensors are read on demand. Its methods may be called from several goroutines.
type File struct {
	name   string
	r      io.ReaderAt
	closer io.Closer
	data   int64 // offset of the first tensor byte
	header header
}

// Open reads and checks the header of a file.
func Open(path string) (*File, error) {
	h, info, err := input.Regular(path)
	if err != nil {
		return nil, err
	}
	f, err := Read(path, h, info.Size())
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	f.closer = h
	return f, nil
}

// Read checks the header of a file that is size bytes long; name is for
// errors. The header must account for every byte exactly once.
func Read(name string, r io.ReaderAt, size int64) (*File, error) {
	head := make([]byte, lengthBytes)
	if err := readFull(name, r, head, 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(head)
	if n > maxHeader {
		return nil, fault(name, 0, fmt.Sprintf("a safetensors header of at most %d bytes", maxHeader),
			strconv.FormatUint(n, 10))
	}
	data := lengthBytes + int64(n)
	if size < data {
		return nil, truncated(name, size, fmt.Sprintf("a header up to byte %d", data))
	}
	text := make([]byte, n)
	if err := readFull(name, r, text, lengthBytes); err != nil {
		return nil, err
	}
	h, end, err := parseHeader(name, text)
	switch {
	case err != nil:
		return nil, err
	case end > size-data:
		return nil, truncated(name, size, fmt.Sprintf("%d tensor bytes, as the header says", end))
	case end < size-data:
		return nil, fault(name, data+end, "the end of the file after the last tensor",
			quantity.Count(size-data-end, "more byte"))
	}
	return &File{name: name, r: r, data: data, header: h}, nil
}

// readFull fills b from the offset; an early end is ErrTruncated.
func readFull(name string, r io.ReaderAt, b []byte, offset int64) error {
	n, err := r.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) || err == nil {
		return truncated(name, offset+int64(n), fmt.Sprintf("%d bytes from byte %d", len(b), offset))
	}
	return fmt.Errorf("reading %q: %w", name, err)
}

// truncated is the error about a file that ends at a byte.
func truncated(name string, end int64, want string) error {
	return &input.Error{File: name, Position: fmt.Sprintf("byte %d", end), Expected: want, Err: ErrTruncated}
}

// Close closes a file that Open opened.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// Tensors lists the tensors in the order of their bytes. The caller owns it.
func (f *File) Tensors() []Tensor { return slices.Clone(f.header.tensors) }

// Bytes reads the raw little-endian bytes of a tensor of the file.
func (f *File) Bytes(t Tensor) ([]byte, error) {
	b := make([]byte, t.End-t.Begin)
	return b, readFull(f.name, f.r, b, f.data+t.Begin)
}
