package safetensors

import (
	"errors"
	"fmt"
)

// ErrTruncated is wrapped by the errors about files that end too early.
var ErrTruncated = errors.New("file is cut short")

// ErrNoTensor is wrapped by the errors about names that a file does not hold.
var ErrNoTensor = errors.New("no such tensor")

// FormatError says what is wrong with a file, and where.
type FormatError struct {
	Name   string // the file
	Offset int64  // the byte the complaint is about, from the start of the file
	Msg    string // what was expected and what was found
	Err    error  // ErrTruncated, or nil
}

func (e *FormatError) Error() string {
	kind := "a valid"
	if e.Err != nil {
		kind = "a whole"
	}
	return fmt.Sprintf("%q is not %s safetensors file: %s", e.Name, kind, e.Fault())
}

// Fault is the error without the file's name, for lists that name it already.
func (e *FormatError) Fault() string {
	if e.Err != nil {
		return fmt.Sprintf("byte %d: %v: %s", e.Offset, e.Err, e.Msg)
	}
	return fmt.Sprintf("byte %d: %s", e.Offset, e.Msg)
}

// Unwrap is the sentinel, for errors.Is.
func (e *FormatError) Unwrap() error { return e.Err }
