package input

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// ErrPointer is wrapped by the error about a file that Git LFS has not fetched.
var ErrPointer = errors.New("a Git LFS pointer")

const pointer = "version https://git-lfs"

// Open opens a regular file for reading.
func Open(path string) (*os.File, error) {
	f, _, err := Regular(path)
	return f, err
}

// Regular opens a regular file. It refuses all others, and pointers, before more than the beginning is read: devices do
// not end, and no signal ends waiting for the writer of a pipe.
func Regular(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		try := "check its name and folder"
		if path == "-" || strings.Contains(path, "://") {
			try = "standard input and URLs are not read: save it as a file"
		}
		err = &Error{File: path, Expected: "a file", Found: "no such file", Try: try, Err: err}
	}
	if err != nil {
		return nil, nil, err
	}
	head := make([]byte, len(pointer))
	info, err := f.Stat()
	switch n, _ := f.ReadAt(head, 0); {
	case err != nil:
	case info.IsDir():
		err = &Error{File: path, Expected: "a file", Found: "a folder", Try: "name a file in it", Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		err = &Error{File: path, Expected: "a regular file", Found: "a pipe, socket or device"}
	case string(head[:n]) == pointer:
		err = &Error{File: path, Expected: "the file itself", Found: "a Git LFS pointer to it", Try: "run 'git lfs pull'",
			Err: ErrPointer}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// Head is the first bytes of a regular file, at most n.
func Head(path string, n int64) ([]byte, error) {
	f, _, err := Regular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, n))
}

// ReadFile reads what Open opens, at most so many bytes.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	if info, err := f.Stat(); err == nil && info.Size() <= most {
		b.Grow(int(info.Size()) + bytes.MinRead) // else a large file takes twice its size
	}
	if n, err := b.ReadFrom(io.LimitReader(f, most+1)); err != nil || n <= most {
		return b.Bytes(), err
	}
	return nil, &Error{File: path, Expected: fmt.Sprintf("at most %d bytes", most), Found: "more"}
}
