package trace

import (
	"cmp"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/capture"
)

// Deed is what a host does instead of launching.
type Deed string

// Launches is the deed that a profiler makes long; see deedNames for the others.
const Launches Deed = "launch calls"

// What an event says of its launch: it came in time, or late, mostly for one of the deeds.
const (
	inTime = iota
	late
	collecting
	locked
	launching
)

// deedNames has no name for anything else that a late host did.
var deedNames = [...]Deed{collecting: "Python garbage collection", locked: "waiting for Python's lock",
	launching: Launches}

// deeds is for how long, in nanoseconds, a GPU ran nothing before kernels, by what its host did.
type deeds [len(deedNames)]int64

// most is what the host did in more than half of the time of late launches.
func (d deeds) most() Deed {
	var all int64
	for _, ns := range d[late:] {
		all += ns
	}
	for deed := late; deed < len(d); deed++ {
		if 2*d[deed] > all {
			return deedNames[deed]
		}
	}
	return ""
}

// never is a time before all others.
const never = math.MinInt64

// host fills in what the host did for a launched kernel before it ran. The GPU is free from a time on, which is
// not known before the first kernel.
func (a *attribution) host(k *capture.Kernel, e *event, free int64) {
	clip := func(ns int64) int32 { return int32(min(max(ns, 0), math.MaxInt32-1)) }
	l := &a.rec.Launches[k.Launch]
	e.Queued, e.Replayed = clip(k.Start-l.Start), a.several[k.Launch] > 1
	if w, waited := a.waits[k.Launch]; waited {
		e.Waited, e.Since = max(1, clip(w.End-w.Start)), clip(l.Start-w.End)
		delete(a.waits, k.Launch) // the other kernels of a graph do not wait again
	}
	until := min(k.Start, l.End)
	if free == never || until <= free {
		return
	}
	e.Late = late
	switch half := (until - free) / 2; {
	case a.python.Collects[a.rec.Devices[k.Device].Process].Within(free, until) > half:
		e.Late = collecting
	case a.python.Locked[l.Thread].Within(free, until) > half:
		e.Late = locked
	case until-max(free, l.Start) > half:
		e.Late = launching
	}
}

// waits gives the launches before which their thread waited, since its launch before, from the
// first such wait to the last.
func waits(rec *capture.Recording) map[int32]capture.Call {
	waited, byThread := map[int32]capture.Call{}, make([][]int32, len(rec.Threads)) // launches
	if len(rec.Waits) == 0 {
		return waited
	}
	for i, l := range rec.Launches {
		byThread[l.Thread] = append(byThread[l.Thread], int32(i))
	}
	begin := func(i int32) int64 { return rec.Launches[i].Start }
	for _, own := range byThread {
		slices.SortFunc(own, func(x, y int32) int { return cmp.Compare(begin(x), begin(y)) })
	}
	slices.SortFunc(rec.Waits, func(x, y capture.Call) int { return cmp.Compare(x.End, y.End) })
	for _, w := range rec.Waits {
		own := byThread[w.Thread]
		n, _ := slices.BinarySearchFunc(own, w.End, func(i int32, t int64) int { return cmp.Compare(begin(i), t) })
		if n < len(own) && (n == 0 || begin(own[n-1]) < w.Start) {
			if before, again := waited[own[n]]; again {
				w.Start = before.Start
			}
			waited[own[n]] = w
		}
	}
	return waited
}
