// Package source turns what a user names (files, folders, patterns, campaigns) into
// what can be judged: traces with the expert statistics of the same run, launches
// from benchmark reports, and campaigns with the traces of their profiled pair.
//
// It decides which file is what. It parses no format itself and renders nothing.
package source

import (
	"context"
	"errors"
	"fmt"
)

// ErrUsage is wrapped by errors about which inputs are named, as opposed to errors
// about the contents of one.
var ErrUsage = errors.New("usage error")

// ErrNotComparable is wrapped by errors about inputs that cannot be the two arms of
// one comparison.
var ErrNotComparable = errors.New("not comparable")

// marked is an error of a kind that its text does not repeat.
type marked struct {
	error
	kind error
}

func (e marked) Unwrap() []error { return []error{e.error, e.kind} }

func usagef(format string, args ...any) error {
	return marked{fmt.Errorf(format, args...), ErrUsage}
}

// Interruptible runs read, and returns early when ctx is done. Opening a named pipe
// that nobody writes to blocks forever and takes no context; such a read is
// abandoned. It must have no effect but its result.
func Interruptible[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type outcome struct {
		result T
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := read()
		done <- outcome{result, err}
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
		var none T
		return none, errors.New("interrupted")
	}
}
