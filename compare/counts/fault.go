package counts

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/moebalance/moebalance/router/input"
)

// fault ends the reading of a file, by a panic that attempt turns into an error. A reader that refuses what it
// does not understand would otherwise have an error on every second line.
type fault struct{ error }

func fail(format string, args ...any) { panic(fault{fmt.Errorf(format, args...)}) }

// must is a value that could be read; an error ends the reading.
func must[T any](v T, err error) T {
	if err != nil {
		panic(fault{err})
	}
	return v
}

// attempt reads, and returns the fault that ended it.
func attempt(read func()) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case fault:
			err = v.error
		default:
			panic(v)
		}
	}()
	read()
	return nil
}

// reading reads a file, and names it in the error where that does not.
func reading(path string, read func()) error {
	err := attempt(read)
	if named := (*input.Error)(nil); err == nil || errors.As(err, &named) {
		return err
	}
	if p := (*fs.PathError)(nil); errors.As(err, &p) && p.Path == path {
		err = p.Err
	}
	return &input.Error{File: path, Err: err}
}
