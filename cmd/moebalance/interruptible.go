package main

import (
	"context"
	"errors"
)

// interruptible does work that does not hear of ctx, such as opening a pipe that
// nobody writes to, which can last for ever. When ctx is done it leaves the work
// behind and fails: the process is about to end. The work must only read.
func interruptible[T any](ctx context.Context, work func() (T, error)) (T, error) {
	var result T
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		result, err = work()
	}()
	select {
	case <-done:
		return result, err
	case <-ctx.Done():
		var none T
		return none, withCode(exitInterrupted, errors.New("interrupted"))
	}
}
