package capture

import (
	"cmp"
	"slices"
	"strings"
)

// Python is when each process collects garbage, and when each thread waits for Python's
// lock (GIL): ranges of TensorRT-LLM with TLLM_PROFILE_RECORD_GC, of PyTorch's profiler
// with record_python_gc_info, and of nsys with --trace python-gil.
type Python struct{ Collects, Locked map[int32]Intervals }

// Python finds these ranges by their names.
func (r *Recording) Python() Python {
	p := Python{map[int32]Intervals{}, map[int32]Intervals{}}
	for _, n := range r.Ranges {
		switch i, name, of := (interval{n.Start, n.End}), r.RangeNames[n.Name], r.Threads[n.Thread]; {
		case strings.EqualFold(name, "python gc"):
			p.Collects[of] = append(p.Collects[of], i)
		case strings.EqualFold(name, "waiting for gil"):
			p.Locked[n.Thread] = append(p.Locked[n.Thread], i)
		}
	}
	for _, lists := range []map[int32]Intervals{p.Collects, p.Locked} {
		for _, l := range lists {
			slices.SortFunc(l, func(a, b interval) int { return cmp.Compare(a.start, b.start) })
		}
	}
	return p
}

type interval struct{ start, end int64 }

// Intervals come in the order of time, and do not overlap: a process collects garbage, and a thread waits, once at a
// time.
type Intervals []interval

// Within is how much of a stretch of time lies in the intervals.
func (l Intervals) Within(from, to int64) (ns int64) {
	at, _ := slices.BinarySearchFunc(l, from, func(i interval, t int64) int { return cmp.Compare(i.end, t) })
	for ; at < len(l) && l[at].start < to; at++ {
		ns += max(0, min(l[at].end, to)-max(l[at].start, from))
	}
	return ns
}
