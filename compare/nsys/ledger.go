package nsys

import (
	"cmp"
	"slices"
	"sync"

	"github.com/moebalance/moebalance/compare/nsys/capture"
)

// digest is everything later questions need of one export: what its probe
// found and, per rank, every kernel with its place. It is what a summary file
// holds, so a result from summaries is computed by the same code from the same
// values as one from the exports.
type digest struct {
	export      Export
	arm         string // normal, perfect or empty
	armEvidence string
	world       int   // ranks of the whole run where the environment says, else 0
	session     int64 // UTC nanoseconds of the capture's zero; 0 when not recorded
	names       []string
	classes     []class // of names
	places      []place
	ledgers     []*ledger
}

// ledger is what one rank did.
type ledger struct {
	rank       Rank
	unit       capture.Device
	events     []event
	graphs     []graphEvent
	launchedNS int64 // of kernels whose launch is recorded
	replayed   int64 // kernels that a graph replayed
}

// event is one kernel; place and name index the digest's.
type event struct {
	start, duration int64
	place, name     int32
}

// graphEvent is one launch of a graph whose kernels the capture hid.
type graphEvent struct {
	Graph int64 `json:"graph"`
	Step  int32 `json:"step"`
	Start int64 `json:"start"`
	NS    int64 `json:"ns"`
}

// settle puts the events in the order of time, the same for every way in which
// they were read, and keeps the names and places that occur.
func (d *digest) settle() {
	var wait sync.WaitGroup
	for _, l := range d.ledgers {
		wait.Go(l.sort)
	}
	wait.Wait()
	names, places := newChoice(len(d.names)), newChoice(len(d.places))
	for _, l := range d.ledgers {
		for i := range l.events {
			l.events[i].name = names.of(l.events[i].name)
			l.events[i].place = places.of(l.events[i].place)
		}
	}
	d.names, d.classes, d.places = chosen(d.names, names.from), chosen(d.classes, names.from), chosen(d.places, places.from)
}

// sort puts the events in the order of time; they mostly are.
func (l *ledger) sort() {
	inTime := func(a, b event) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.duration, b.duration),
			cmp.Compare(a.place, b.place), cmp.Compare(a.name, b.name))
	}
	if !slices.IsSortedFunc(l.events, inTime) {
		slices.SortFunc(l.events, inTime)
	}
}

// choice renumbers the rows of a table that occur, by first sight.
type choice struct {
	to   []int32 // new number plus 1, 0 for none
	from []int32 // old number by new
}

func newChoice(rows int) *choice { return &choice{to: make([]int32, rows)} }

func (c *choice) of(row int32) int32 {
	if c.to[row] == 0 {
		c.from = append(c.from, row)
		c.to[row] = int32(len(c.from))
	}
	return c.to[row] - 1
}

func chosen[T any](from []T, which []int32) []T {
	out := make([]T, len(which))
	for i, w := range which {
		out[i] = from[w]
	}
	return out
}
