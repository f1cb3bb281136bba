package nsys

import (
	"cmp"
	"slices"
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
	unit       unit
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
	names, places := newNumbering[int32](), newNumbering[int32]()
	for _, l := range d.ledgers {
		inTime := func(a, b event) int {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.duration, b.duration),
				cmp.Compare(a.place, b.place), cmp.Compare(a.name, b.name))
		}
		if !slices.IsSortedFunc(l.events, inTime) {
			slices.SortFunc(l.events, inTime)
		}
		for i := range l.events {
			l.events[i].name = names.of(l.events[i].name)
			l.events[i].place = places.of(l.events[i].place)
		}
	}
	d.names, d.classes, d.places = chosen(d.names, names.values), chosen(d.classes, names.values), chosen(d.places, places.values)
}

func chosen[T any](from []T, which []int32) []T {
	out := make([]T, len(which))
	for i, w := range which {
		out[i] = from[w]
	}
	return out
}
