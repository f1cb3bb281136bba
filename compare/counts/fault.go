package counts

import (
	"errors"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router/input"
)

// A fault ends the reading, see tensor.Fault.
func fail(format string, args ...any) { tensor.Fail(format, args...) }

func must[T any](v T, err error) T { return tensor.Must(v, err) }

func attempt(read func()) error { return tensor.Attempt(read) }

// within reads, and adds the place to a fault: record 2: layer_3: item [0 1]: want a number.
func within(place string, read func()) {
	if err := attempt(read); err != nil {
		fail("%s: %w", place, err)
	}
}

// reading reads a file, and names it in the error where that does not.
func reading(path string, read func()) error {
	err := attempt(read)
	if named := (*input.Error)(nil); err == nil || errors.As(err, &named) {
		return err
	}
	return &input.Error{File: path, Err: err}
}
