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
		switch name, of := r.RangeNames[n.Name], r.Threads[n.Thread]; {
		case strings.EqualFold(name, "python gc"):
			p.Collects[of] = append(p.Collects[of], n)
		case strings.EqualFold(name, "waiting for gil"):
			p.Locked[n.Thread] = append(p.Locked[n.Thread], n)
		}
	}
	for _, lists := range []map[int32]Intervals{p.Collects, p.Locked} {
		for _, l := range lists {
			slices.SortFunc(l, func(a, b Range) int { return cmp.Compare(a.Start, b.Start) })
		}
	}
	return p
}

// Intervals come in the order of time, and do not overlap: a process collects garbage, and a thread waits, once at a
// time.
type Intervals []Range

// Within is how much of a stretch of time lies in the intervals.
func (l Intervals) Within(from, to int64) (ns int64) {
	at, _ := slices.BinarySearchFunc(l, from, func(r Range, t int64) int { return cmp.Compare(r.End, t) })
	for ; at < len(l) && l[at].Start < to; at++ {
		ns += max(0, min(l[at].End, to)-max(l[at].Start, from))
	}
	return ns
}
