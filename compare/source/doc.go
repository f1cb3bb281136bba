// Package source turns what a user names (files, folders, patterns, campaigns) into
// what can be judged: traces with the expert statistics of the same run, launches
// from benchmark reports, and campaigns.
//
// It decides which file is what, and renders nothing. Classify is the one look at what arguments name, and Meant the
// second, at a file that a verb could not read. Traces come out as trace.Trace, reports, campaigns and results as
// Campaign, and what a report shows as Item.
package source

import (
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

func (m marked) Unwrap() []error { return []error{m.error, m.kind} }

func usagef(format string, args ...any) error {
	return marked{fmt.Errorf(format, args...), ErrUsage}
}
