package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

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
	name     string
	r        io.ReaderAt
	closer   io.Closer
	size     int64
	data     int64 // offset of the first tensor byte
	tensors  []Tensor
	byName   map[string]int
	metadata map[string]string
}

// Open reads and checks the header of a file.
func Open(path string) (*File, error) {
	h, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := h.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%q is a folder, want a safetensors file", path)
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
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
	if err := notPointer(name, r, size); err != nil {
		return nil, err
	}
	var head [lengthBytes]byte
	if size < lengthBytes {
		return nil, &FormatError{Name: name, Offset: size, Err: ErrTruncated, Msg: fmt.Sprintf("want at least %d bytes for the header length, have %d", lengthBytes, size)}
	}
	if err := readFull(name, r, head[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > maxHeader {
		return nil, &FormatError{Name: name, Msg: fmt.Sprintf("want a header of at most %d bytes, have %d", maxHeader, n)}
	}
	data := lengthBytes + int64(n)
	if size < data {
		return nil, &FormatError{Name: name, Offset: size, Err: ErrTruncated, Msg: fmt.Sprintf("the header ends at byte %d, the file has %d", data, size)}
	}
	text := make([]byte, n)
	if err := readFull(name, r, text, lengthBytes); err != nil {
		return nil, err
	}
	h, end, err := parseHeader(name, text)
	if err != nil {
		return nil, err
	}
	switch {
	case end > size-data:
		return nil, &FormatError{Name: name, Offset: size, Err: ErrTruncated, Msg: fmt.Sprintf("the header promises %d tensor bytes, the file has %d", end, size-data)}
	case end < size-data:
		return nil, &FormatError{Name: name, Offset: data + end, Msg: fmt.Sprintf("%d bytes after the last tensor", size-data-end)}
	}
	f := &File{name: name, r: r, size: size, data: data, tensors: h.tensors, metadata: h.metadata, byName: make(map[string]int, len(h.tensors))}
	for i, t := range f.tensors {
		f.byName[t.Name] = i
	}
	return f, nil
}

// notPointer recognises the text that Git LFS leaves in place of a file.
func notPointer(name string, r io.ReaderAt, size int64) error {
	const magic = "version https://git-lfs"
	head := make([]byte, min(size, int64(len(magic))))
	if err := readFull(name, r, head, 0); err != nil {
		return err
	}
	if string(head) == magic {
		return &FormatError{Name: name, Msg: "this is a Git LFS pointer, not the file itself: run 'git lfs pull'"}
	}
	return nil
}

// readFull fills b from the offset; an early end is ErrTruncated.
func readFull(name string, r io.ReaderAt, b []byte, offset int64) error {
	n, err := r.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) || err == nil {
		return &FormatError{Name: name, Offset: offset + int64(n), Err: ErrTruncated, Msg: fmt.Sprintf("want %d bytes from byte %d, have %d", len(b), offset, n)}
	}
	return fmt.Errorf("reading %q: %w", name, err)
}

// Close closes a file that Open opened.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// Name is the path or display name the file was opened with.
func (f *File) Name() string { return f.name }

// Size is the length of the file in bytes.
func (f *File) Size() int64 { return f.size }

// Metadata is the header's __metadata__ map; empty when there is none. The
// caller owns it.
func (f *File) Metadata() map[string]string { return maps.Clone(f.metadata) }

// Tensors lists the tensors in the order of their bytes. The caller owns it.
func (f *File) Tensors() []Tensor { return slices.Clone(f.tensors) }

// Tensor finds a tensor by name; the error wraps ErrNoTensor and lists up to
// eight of the names there are.
func (f *File) Tensor(name string) (Tensor, error) {
	if i, ok := f.byName[name]; ok {
		return f.tensors[i], nil
	}
	var names []string
	for _, t := range f.tensors[:min(8, len(f.tensors))] {
		names = append(names, t.Name)
	}
	if rest := len(f.tensors) - len(names); rest > 0 {
		names = append(names, fmt.Sprintf("and %d more", rest))
	}
	return Tensor{}, fmt.Errorf("%q: %w: want %q, have %s", filepath.Base(f.name), ErrNoTensor, name, strings.Join(names, ", "))
}

// Offset is where the tensor's first byte is, counted from the start of the file.
func (f *File) Offset(t Tensor) int64 { return f.data + t.Begin }

// ReadAt fills b from byte offset within the tensor, or fails.
func (f *File) ReadAt(t Tensor, b []byte, offset int64) error {
	if offset < 0 || offset > t.Bytes() || int64(len(b)) > t.Bytes()-offset {
		return fmt.Errorf("%q: want bytes %d to %d of tensor %q, which has %d", f.name, offset, offset+int64(len(b)), t.Name, t.Bytes())
	}
	return readFull(f.name, f.r, b, f.Offset(t)+offset)
}

// Bytes reads the raw little-endian bytes of the named tensor.
func (f *File) Bytes(name string) ([]byte, Tensor, error) {
	t, err := f.Tensor(name)
	if err != nil {
		return nil, Tensor{}, err
	}
	b := make([]byte, t.Bytes())
	return b, t, f.ReadAt(t, b, 0)
}
