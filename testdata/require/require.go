// Package require ends a test whose preparation fails. Tests of every package import it.
package require

import "testing"

// Value is the value of a call that must succeed, since nothing can be tested without it:
// require.Value(os.ReadFile(path)). It has no *testing.T, as Go passes on two results only
// alone, and panics.
func Value[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// NoError ends the test at an error.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
