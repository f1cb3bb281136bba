package input

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// patience is how long a pipe may wait for the program that writes it.
const patience = 2 * time.Second

// Open opens a file or a pipe for reading. A pipe that nobody writes to, a device and a
// socket are errors: reading them would not end.
func Open(path string) (*os.File, error) {
	info, err := Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, &Error{File: path, Expected: "a file", Found: "a folder", Try: "name a file in it", Err: syscall.EISDIR}
	}
	switch mode := info.Mode(); {
	case mode&(fs.ModeDevice|fs.ModeSocket) != 0:
		return nil, &Error{File: path, Expected: "a file or a pipe", Found: "a device or a socket"}
	case mode&fs.ModeNamedPipe == 0:
		return os.Open(path)
	}
	opened := make(chan struct{})
	var f *os.File
	go func() { // waits for a writer, if need be until the program ends
		f, err = os.Open(path)
		close(opened)
	}()
	select {
	case <-opened:
		return f, err
	case <-time.After(patience):
		return nil, &Error{File: path, Expected: "a pipe that a program writes to", Found: "none within " + patience.String()}
	}
}

// Stat is os.Stat, whose error about a missing file says so in our words.
func Stat(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	return info, missing(path, err)
}

// missing puts the error about a missing file in our words.
func missing(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &Error{File: path, Expected: "a file", Found: "no such file", Try: "check its name and folder", Err: err}
	}
	return err
}

// ErrPointer is wrapped by the error about a pointer that Git LFS left in place of a file.
var ErrPointer = errors.New("a Git LFS pointer")

const pointer = "version https://git-lfs"

// Regular opens a regular file. It refuses anything else, and pointers, before more than their beginning is read: a
// pipe without a writer would block, and no signal ends that.
func Regular(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, missing(path, err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &Error{File: path, Expected: "a regular file", Found: "a folder", Try: "name a file in it", Err: syscall.EISDIR}
	} else if err == nil && !info.Mode().IsRegular() {
		err = &Error{File: path, Expected: "a regular file", Found: "a pipe, socket or device"}
	} else if err == nil {
		head := make([]byte, len(pointer))
		if n, _ := f.ReadAt(head, 0); string(head[:n]) == pointer {
			err = &Error{File: path, Expected: "the file itself", Found: "a Git LFS pointer to it", Try: "run 'git lfs pull'",
				Err: ErrPointer}
		}
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
