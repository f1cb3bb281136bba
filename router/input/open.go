package input

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"
)

// patience is how long a pipe may wait for the program that writes it.
const patience = 2 * time.Second

// Open opens a file or a pipe for reading. A pipe that nobody writes to, a device and a
// socket are errors: reading them would not end.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	switch mode := info.Mode(); {
	case mode&(fs.ModeDevice|fs.ModeSocket) != 0:
		return nil, &Error{File: path, Expected: "a file or a pipe", Found: "a device or a socket"}
	case mode&fs.ModeNamedPipe == 0:
		return os.Open(path)
	}
	opened := make(chan error, 1)
	var f *os.File
	go func() {
		var err error
		f, err = os.Open(path) // waits for a writer
		opened <- err
	}()
	select {
	case err = <-opened:
		return f, err
	case <-time.After(patience):
	}
	// A writer of our own lets the reader go.
	if w, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		w.Close()
		if <-opened == nil {
			f.Close()
		}
	}
	return nil, &Error{File: path, Expected: "a pipe that a program writes to", Found: "none within " +
		patience.String()}
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
	_, err = b.ReadFrom(io.LimitReader(f, most+1))
	text := b.Bytes()
	if err == nil && int64(len(text)) > most {
		err = &Error{File: path, Expected: "at most " + strconv.FormatInt(most, 10) + " bytes", Found: "more"}
	}
	return text, err
}
