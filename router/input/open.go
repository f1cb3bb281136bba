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
	if errors.Is(err, fs.ErrNotExist) {
		err = &Error{File: path, Expected: "a file", Found: "no such file", Try: "check its name and folder", Err: err}
	}
	return info, err
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
