// Package require holds what tests of every package need: a preparation that fails ends them, and a
// number is near another.
package require

import (
	"math"
	"testing"
)

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

// Near wants a number to differ from another by so much at most, or both to be NaN. The test goes on where it does
// not.
func Near[T ~float64](t testing.TB, what string, have T, want, within float64) {
	t.Helper()
	if x := float64(have); !(math.Abs(x-want) <= within) && !(math.IsNaN(x) && math.IsNaN(want)) {
		t.Errorf("%s: have %.10g, want %.10g ± %.2g", what, x, want, within)
	}
}
