package tensor

import "fmt"

// Fault ends the reading of a file, by a panic that Attempt turns into an error. Readers that refuse whatever they do
// not understand would otherwise have an error on every second line.
type Fault struct{ error }

// Fail ends the reading.
func Fail(format string, args ...any) { panic(Fault{fmt.Errorf(format, args...)}) }

// Must is a value that could be read; an error ends the reading.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(Fault{err})
	}
	return v
}

// Attempt reads, and returns the fault that ended it.
func Attempt(read func()) (err error) {
	defer func() {
		v := recover()
		fault, is := v.(Fault)
		if err = fault.error; v != nil && !is {
			panic(v)
		}
	}()
	read()
	return nil
}
