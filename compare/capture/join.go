package capture

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
)

// newParts are readers that fill one recording at the same time, each its own fields.
func newParts() (*work, *calls, *spans) {
	rec := &Recording{Operators: []string{""}}
	return &work{Recording: rec}, &calls{Recording: rec}, &spans{Recording: rec}
}

// work fills in what ran on the GPU, as a source lists it: without launches yet.
type work struct {
	*Recording
	badTimes
	processes    Index[int64]
	devices      Index[Device]
	correlations []uint32 // by kernel
	nodeThreads  Index[int64]
	end          int64
	total        uint64 // ns
}

// badTimes counts the events whose times cannot be used.
type badTimes int64

// believable reports whether an event's times can be used, and counts it if not.
func (b *badTimes) believable(start, end int64) bool {
	if start < -TimeLimit || end > TimeLimit || end < start {
		*b++
		return false
	}
	return true
}

// add takes a kernel with the correlation id of its launch and the graph node that it replays, 0 for
// none, and reports whether it did: one with which the times of all add up to more than 64 bits is not believable.
func (w *work) add(k Kernel, correlation uint32, node int64) bool {
	if w.total += uint64(k.End - k.Start); w.total > math.MaxInt64 {
		w.total = math.MaxInt64
		w.badTimes++
		return false
	}
	if node != 0 {
		w.GraphNodeIDs = append(w.GraphNodeIDs, node)
		k.GraphNode = int32(len(w.GraphNodeIDs))
	}
	w.end = max(w.end, k.End)
	w.Kernels = append(w.Kernels, k)
	w.correlations = append(w.correlations, correlation)
	return true
}

// device numbers a device of a process. A device beyond 32 bits is none that exists.
func (w *work) device(process, ordinal int64) int32 {
	return w.devices.Number(Device{w.processes.Number(process), int32(min(max(ordinal, -1), math.MaxInt32))})
}

// noCorrelation is the correlation id of an event that has none. CUPTI counts from 1, in 32 bits.
const noCorrelation = 0

// correlationOf is noCorrelation for what is no correlation id.
func correlationOf(id int64) uint32 {
	if id < 0 || id > math.MaxUint32 {
		return noCorrelation
	}
	return uint32(id)
}

// calls fill in the API calls that launch or wait, in the order of the source.
type calls struct {
	*Recording
	badTimes
	correlations []uint32 // by launch
	kernel       []bool   // by launch: it launches a kernel, not a graph
	captures     []graphCapture
	threads      Index[int64]
}

// process is the global id of a launch's process.
func (c *calls) process(l Call) int64 { return c.threads.Values[l.Thread] & processMask }

// graphCapture is the begin or the end of the capture of a graph on a thread.
type graphCapture struct {
	thread int32
	at     int64
	begin  bool
}

func (g graphCapture) compare(o graphCapture) int {
	return cmp.Or(cmp.Compare(g.thread, o.thread), cmp.Compare(g.at, o.at))
}

// callKind is what a call means for the kernels behind it.
type callKind uint8

const (
	otherCall callKind = iota
	kernelCall
	graphLaunch
	beginCapture
	endCapture
	waitCall
)

// callKindOf reads the name of a call, which carries the interface before it and a version
// behind: cudaLaunchKernelExC_v11060, cuLaunchKernelEx and hipLaunchKernel launch kernels.
func callKindOf(name string) callKind {
	switch {
	case strings.Contains(name, "StreamBeginCapture"):
		return beginCapture
	case strings.Contains(name, "StreamEndCapture"):
		return endCapture
	case strings.Contains(name, "Synchronize"), strings.Contains(name, "Memcpy"): // from pageable memory, it waits
		return waitCall
	case strings.Contains(name, "GraphLaunch"):
		return graphLaunch
	case strings.Contains(name, "Launch") && !strings.Contains(name, "HostFunc"):
		return kernelCall
	}
	return otherCall
}

// add keeps a call that launches, waits, or begins or ends the capture of a graph.
func (c *calls) add(kind callKind, l Call, correlation uint32) {
	switch kind {
	case beginCapture, endCapture:
		c.captures = append(c.captures, graphCapture{l.Thread, l.Start, kind == beginCapture})
	case waitCall:
		c.Waits = append(c.Waits, l)
	case graphLaunch:
		c.GraphLaunches++
		fallthrough
	case kernelCall:
		c.Launches = append(c.Launches, l)
		c.correlations = append(c.correlations, correlation)
		c.kernel = append(c.kernel, kind == kernelCall)
	}
}

// capturing reports whether a thread captures a graph at a time: the capture's begin is
// the last before it, or its end the first of all.
func (c *calls) capturing(thread int32, at int64) bool {
	i, _ := slices.BinarySearchFunc(c.captures, graphCapture{thread: thread, at: at}, graphCapture.compare)
	if i > 0 && c.captures[i-1].thread == thread {
		return c.captures[i-1].begin
	}
	return i < len(c.captures) && c.captures[i].thread == thread && !c.captures[i].begin
}

// launched are the launches of a process, in the order of correlation ids and starts.
type launched struct {
	*calls
	order []int32
	last  int // the place of the one found last
}

// byProcess are the launches by the global id of their process.
func (c *calls) byProcess() map[int64]*launched {
	all := map[int64]*launched{}
	for i, l := range c.Launches {
		pid := c.process(l)
		p := all[pid]
		if p == nil {
			p = &launched{calls: c}
			all[pid] = p
		}
		p.order = append(p.order, int32(i))
	}
	for _, p := range all {
		slices.SortFunc(p.order, func(a, b int32) int { // in which they mostly are
			return cmp.Or(cmp.Compare(c.correlations[a], c.correlations[b]),
				cmp.Compare(c.Launches[a].Start, c.Launches[b].Start))
		})
	}
	return all
}

// find gives the launch with a correlation id, −1 for none: of several the last that began
// before the execution did, and the first if none did. It mostly is the one behind the launch found before.
func (p *launched) find(id uint32, start int64) int32 {
	is := func(at int) bool { return at >= 0 && at < len(p.order) && p.correlations[p.order[at]] == id }
	at := p.last + 1
	if !is(at) || is(at-1) || is(at+1) {
		at, _ = slices.BinarySearchFunc(p.order, id, func(l int32, id uint32) int {
			return cmp.Or(cmp.Compare(p.correlations[l], id), cmp.Compare(p.Launches[l].Start, start), -1)
		})
		if is(at - 1) {
			at--
		}
	}
	if !is(at) {
		return -1
	}
	p.last = at
	return p.order[at]
}

// spans fill in the named ranges of a source.
type spans struct {
	*Recording
	badTimes
	names   interner
	threads Index[int64]
	end     int64 // the last time at which a range begins or ends
}

// openEnd is the end of a range that was never closed, until the capture's end is known.
const openEnd = TimeLimit

// add takes a range.
func (s *spans) add(r Range) {
	if s.believable(r.Start, r.End) {
		if s.end = max(s.end, r.Start); r.End != openEnd {
			s.end = max(s.end, r.End)
		} else {
			s.OpenRanges++
		}
		s.Ranges = append(s.Ranges, r)
	}
}

// join completes the recording: one numbering of threads and processes, and every execution with its launch.
func join(w *work, c *calls, s *spans) *Recording {
	rec := w.Recording
	rec.BadTimes, rec.RangeNames = int64(w.badTimes+c.badTimes+s.badTimes), s.names.valid()
	launches := c.byProcess()
	if len(launches) == 1 && slices.Equal(w.processes.Values, []int64{0}) { // no work names its process: the only one's
		w.processes.Values = slices.Collect(maps.Keys(launches))
		w.processes.number = nil
	}
	rec.joinLaunches(w, c, launches)
	threads := Index[int64]{}
	for _, calls := range [][]Call{rec.Launches, rec.Waits} {
		for i := range calls {
			calls[i].Thread = threads.Number(c.threads.Values[calls[i].Thread])
		}
	}
	for i := range rec.Ranges {
		r := &rec.Ranges[i]
		if r.Thread = threads.Number(s.threads.Values[r.Thread]); r.End == openEnd {
			r.End = max(w.end, s.end)
		}
	}
	for i := range rec.GraphNodes {
		rec.GraphNodes[i].Thread = threads.Number(w.nodeThreads.Values[rec.GraphNodes[i].Thread])
	}
	for _, tid := range threads.Values {
		rec.Threads = append(rec.Threads, w.processes.Number(tid&processMask))
	}
	rec.Processes, rec.Devices = w.processes.Values, w.devices.Values
	return rec
}

// joinLaunches gives kernels their launches, and leaves out the launches of nothing. It counts those, once each, whose
// kernel is lost: of a process that ran something on a GPU, and not while a graph was captured.
func (r *Recording) joinLaunches(w *work, c *calls, launches map[int64]*launched) {
	of, worked := make([]*launched, len(w.devices.Values)), map[int64]bool{} // by device, by process
	for i, d := range w.devices.Values {
		pid := w.processes.Values[d.Process]
		of[i], worked[pid] = launches[pid], true
	}
	number := make([]int32, len(r.Launches)) // of launches, from 1 on
	find := func(device int32, id uint32, start int64) int32 {
		if p := of[device]; p != nil && id != noCorrelation {
			if launch := p.find(id, start); launch >= 0 {
				number[launch] = 1
				return launch
			}
		}
		return -1
	}
	for i := range r.Kernels {
		k := &r.Kernels[i]
		k.Launch = find(k.Device, w.correlations[i], k.Start)
	}
	for _, g := range r.Graphs {
		find(g.Device, g.Correlation, g.Start)
	}
	slices.SortFunc(c.captures, graphCapture.compare)
	all, lost := r.Launches, map[Call]bool{}
	r.Launches = all[:0]
	for i, l := range all {
		if number[i] > 0 {
			r.Launches = append(r.Launches, l)
			number[i] = int32(len(r.Launches))
		} else if c.kernel[i] && worked[c.process(l)] && !c.capturing(l.Thread, l.Start) {
			lost[l] = true
		}
	}
	for i := range r.Kernels {
		if k := &r.Kernels[i]; k.Launch >= 0 {
			k.Launch = number[k.Launch] - 1
			delete(lost, r.Launches[k.Launch]) // recorded twice
		}
	}
	r.LostKernels = int64(len(lost))
}
