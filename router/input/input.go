// Package input is what every reader says of an input that it cannot use: which
// file, where in it, what was expected and what was found.
package input

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Error is about one input. Every field but File and Found may be empty.
type Error struct {
	File     string // path or display name
	Position string // "byte 512", "line 3", "table NVTX_EVENTS", "layer 4"
	Expected string // what a usable input has there
	Found    string // what this one has
	Try      string // what the user can do about it
	Err      error  // the cause, for errors.Is; printed only where Found is empty
}

// Error is one line: FILE: POSITION: want EXPECTED, have FOUND; TRY.
func (e *Error) Error() string { return e.File + ": " + e.Fault() }

// Fault is the error without the file's name, for lists that name it already.
func (e *Error) Fault() string {
	var b strings.Builder
	if e.Position != "" {
		b.WriteString(e.Position + ": ")
	}
	found := e.Found
	if found == "" && e.Err != nil {
		found = e.Err.Error()
	}
	switch {
	case e.Expected == "":
		b.WriteString(found)
	case found == "":
		b.WriteString("want " + e.Expected)
	default:
		b.WriteString("want " + e.Expected + ", have " + found)
	}
	if e.Try != "" {
		b.WriteString("; " + e.Try)
	}
	return oneLine(b.String())
}

// oneLine keeps a text quoted from a file from breaking or flooding the message.
func oneLine(text string) string {
	const most = 400
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

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

// mostNumbers bounds a list of numbers, which a mistyped range could make endless.
const mostNumbers = 10_000

// Numbers reads whole numbers from 0: 1,8,64, the range 1-16 with both ends, or 1-64:8,
// which is every eighth from 1. In a list, all of them may stand.
func Numbers(text string) (list []int, err error) {
	refused := fmt.Errorf("want whole numbers such as 1,8,64 or the range 1-16 or 1-64:8, have %q", text)
	for part := range strings.SplitSeq(text, ",") {
		span, every, stepped := strings.Cut(strings.TrimSpace(part), ":")
		low, high, ranged := strings.Cut(span, "-")
		if !ranged {
			high = low
		}
		if !stepped {
			every = "1"
		}
		var n [3]uint64
		for i, digits := range []string{low, high, every} {
			if n[i], err = strconv.ParseUint(digits, 10, 62); err != nil {
				return nil, refused
			}
		}
		if n[1] < n[0] || n[2] == 0 || stepped && !ranged {
			return nil, refused
		}
		if uint64(len(list))+(n[1]-n[0])/n[2] >= mostNumbers {
			return nil, fmt.Errorf("want at most %d numbers, have %q", mostNumbers, text)
		}
		for v := n[0]; v <= n[1]; v += n[2] {
			list = append(list, int(v))
		}
	}
	return list, nil
}
