package capture

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/moebalance/moebalance/router/input"
)

// work is what ran on the GPU, as a source lists it: without launches yet.
type work struct {
	issues       Issues
	names        []string
	processes    *Index[int64]
	devices      *Index[Device]
	streams      *Index[Stream] // of kernels
	kernels      []Kernel
	correlations []uint32 // by kernel
	nodeIDs      []int64  // of the kernels that a graph replayed
	graphs       []GraphLaunch
	nodes        []GraphNode
	nodeThreads  *Index[int64]
	end          int64
	total        uint64 // ns
	noPIDs       bool   // no process beside any kernel
}

func newWork() *work {
	return &work{issues: Issues{}, processes: NewIndex[int64](0), devices: NewIndex[Device](0),
		streams: NewIndex[Stream](0), nodeThreads: NewIndex[int64](0)}
}

// add takes a kernel with the correlation id of its launch, its stream and the graph node
// that it replays, 0 for none. Times are checked already.
func (w *work) add(k Kernel, correlation uint32, stream, node int64) error {
	if node != 0 {
		w.nodeIDs = append(w.nodeIDs, node)
		k.GraphNode = int32(len(w.nodeIDs))
	}
	w.streams.Number(Stream{k.Device, stream})
	w.end = max(w.end, k.End)
	w.kernels = append(w.kernels, k)
	w.correlations = append(w.correlations, correlation)
	if w.total += uint64(k.End - k.Start); w.total > math.MaxInt64 {
		return &input.Error{Position: "kernels", Expected: "a sum of durations within 64 bits", Found: "more",
			Try: exportAgain, Err: ErrDamaged}
	}
	return nil
}

// device numbers a device of a process. A device beyond 32 bits is none that exists.
func (w *work) device(process, ordinal int64) int32 {
	return w.devices.Number(Device{w.processes.Number(process), int32(min(max(ordinal, -1), math.MaxInt32))})
}

// noCorrelation is the correlation id of an event that has none. CUPTI counts from 1, in 32 bits.
const noCorrelation = math.MaxUint32

// correlationOf is noCorrelation for what is no correlation id.
func correlationOf(id int64, known bool) uint32 {
	if !known || id < 0 || id >= noCorrelation {
		return noCorrelation
	}
	return uint32(id)
}

// calls are the API calls that launch, in any order.
type calls struct {
	issues       Issues
	list         []Launch
	correlations []uint32 // by launch
	kernel       []bool   // by launch: it launches a kernel, not a graph
	captures     []graphCapture
	threads      *Index[int64]
	count        int64    // of all calls
	keys         []uint64 // by launch, once these are sorted: process and correlation id
}

func newCalls() *calls { return &calls{issues: Issues{}, threads: NewIndex[int64](0)} }

// graphCapture is the begin or the end of the capture of a graph on a thread.
type graphCapture struct {
	thread int32
	at     int64
	begin  bool
}

func (c graphCapture) compare(o graphCapture) int {
	return cmp.Or(cmp.Compare(c.thread, o.thread), cmp.Compare(c.at, o.at))
}

// callKind is what a call means for the kernels behind it.
type callKind uint8

const (
	otherCall callKind = iota
	kernelCall
	graphCall
	beginCapture
	endCapture
)

// callKindOf reads the name of a call, which carries the interface before it and a version
// behind: cudaLaunchKernelExC_v11060, cuLaunchKernelEx and hipLaunchKernel launch kernels.
func callKindOf(name string) callKind {
	switch {
	case strings.Contains(name, "StreamBeginCapture"):
		return beginCapture
	case strings.Contains(name, "StreamEndCapture"):
		return endCapture
	case !strings.Contains(name, "Launch"):
		return otherCall
	case strings.Contains(name, "Kernel"):
		return kernelCall
	}
	return graphCall
}

// add keeps a call that launches, or begins or ends the capture of a graph.
func (c *calls) add(kind callKind, l Launch, correlation uint32) {
	switch kind {
	case beginCapture, endCapture:
		c.captures = append(c.captures, graphCapture{l.Thread, l.Start, kind == beginCapture})
	case kernelCall, graphCall:
		c.list = append(c.list, l)
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

// sort puts the launches in the order of process, correlation id and start.
func (c *calls) sort(processes *Index[int64]) {
	slices.SortFunc(c.captures, graphCapture.compare)
	of := make([]uint64, len(c.threads.Values))
	for i, tid := range c.threads.Values {
		of[i] = uint64(processes.Number(tid & processMask))
	}
	c.keys = make([]uint64, len(c.list))
	for i, l := range c.list {
		c.keys[i] = of[l.Thread]<<32 | uint64(c.correlations[i])
	}
	c.correlations = nil
	if !sort.IsSorted(c) { // mostly it is
		sort.Sort(c)
	}
}

func (c *calls) Len() int { return len(c.list) }

func (c *calls) Less(i, j int) bool {
	return c.keys[i] < c.keys[j] || c.keys[i] == c.keys[j] && c.list[i].Start < c.list[j].Start
}

func (c *calls) Swap(i, j int) {
	c.list[i], c.list[j] = c.list[j], c.list[i]
	c.keys[i], c.keys[j] = c.keys[j], c.keys[i]
	c.kernel[i], c.kernel[j] = c.kernel[j], c.kernel[i]
}

// find gives the number of the launch with a key, −1 for none: of several the last that
// began before the execution did, and the first if none did. It looks first at the launch
// found before and the one behind it, which it mostly is.
func (c *calls) find(key uint64, start int64, before int) int {
	is := func(at int) bool { return at >= 0 && at < len(c.keys) && c.keys[at] == key }
	for _, at := range []int{before, before + 1} {
		if is(at) && !is(at-1) && !is(at+1) {
			return at
		}
	}
	after := sort.Search(len(c.keys), func(i int) bool {
		return c.keys[i] > key || c.keys[i] == key && c.list[i].Start > start
	})
	switch {
	case is(after - 1):
		return after - 1
	case is(after):
		return after
	}
	return -1
}

// spans are the named ranges of a source.
type spans struct {
	issues  Issues
	list    []Range
	names   *interner
	threads *Index[int64]
	domains []string
	end     int64 // the last time at which a range begins or ends
}

func newSpans() *spans {
	return &spans{issues: Issues{}, names: newInterner(), threads: NewIndex[int64](0), domains: []string{""}}
}

// openEnd is the end of a range that was never closed, until the capture's end
// is known.
const openEnd = TimeLimit + 1

// add takes a range; one without an end lasts to the end of the capture.
func (s *spans) add(r Range, ended bool) {
	if !ended {
		r.End = TimeLimit
	}
	if !s.issues.believable(r.Start, r.End) {
		return
	}
	s.end = max(s.end, r.Start)
	if ended {
		s.end = max(s.end, r.End)
	} else {
		s.issues[OpenRanges]++
		r.End = openEnd
	}
	s.list = append(s.list, r)
}

// join makes one recording of what was read: with one numbering of threads and processes,
// and every execution with its launch.
func join(w *work, c *calls, s *spans) *Recording {
	rec := &Recording{
		Issues: w.issues, KernelNames: w.names, RangeNames: s.names.valid(), Operators: []string{""},
		Domains: s.domains, Kernels: w.kernels, GraphNodeIDs: w.nodeIDs, GraphNodes: w.nodes, Graphs: w.graphs,
		NoPIDs: w.noPIDs, Ranges: s.list, APICalls: c.count, End: max(w.end, s.end), RangesEnd: s.end,
	}
	rec.Issues.add(c.issues)
	rec.Issues.add(s.issues)
	rec.joinLaunches(w, c)
	threads := NewIndex[int64](0)
	number := func(own *Index[int64]) []int32 {
		to := make([]int32, len(own.Values))
		for i, tid := range own.Values {
			to[i] = threads.Number(tid)
		}
		return to
	}
	ofCalls, ofRanges, ofNodes := number(c.threads), number(s.threads), number(w.nodeThreads)
	for i := range rec.Launches {
		rec.Launches[i].Thread = ofCalls[rec.Launches[i].Thread]
	}
	for i := range rec.Ranges {
		r := &rec.Ranges[i]
		if r.Thread = ofRanges[r.Thread]; r.End == openEnd {
			r.End = max(rec.End, r.Start)
		}
	}
	for i := range rec.GraphNodes {
		rec.GraphNodes[i].Thread = ofNodes[rec.GraphNodes[i].Thread]
	}
	for _, tid := range threads.Values {
		rec.Threads = append(rec.Threads, Thread{ID: tid, Process: w.processes.Number(tid & processMask)})
	}
	rec.Processes, rec.Devices, rec.Streams = w.processes.Values, w.devices.Values, w.streams.Values
	return rec
}

// joinLaunches gives executions their launches, and leaves out the launches of nothing.
func (r *Recording) joinLaunches(w *work, c *calls) {
	c.sort(w.processes)
	worked := make([]bool, len(w.processes.Values)) // by process
	for _, d := range w.devices.Values {
		worked[d.Process] = true
	}
	number, before := make([]int32, len(c.list)), 0 // of launches, from 1 on
	find := func(device int32, correlation uint32, start int64) int32 {
		at := -1
		if correlation != noCorrelation {
			at = c.find(uint64(w.devices.Values[device].Process)<<32|uint64(correlation), start, before)
		}
		if at >= 0 {
			number[at], before = 1, at
		}
		return int32(at)
	}
	for i := range r.Kernels {
		k := &r.Kernels[i]
		k.Launch = find(k.Device, w.correlations[i], k.Start)
	}
	for i := range r.Graphs {
		g := &r.Graphs[i]
		g.Launch = find(g.Device, correlationOf(g.Correlation, g.Correlation >= 0), g.Start)
	}
	r.Launches = c.list[:0]
	for i, l := range c.list {
		if i > 0 && c.keys[i] == c.keys[i-1] && uint32(c.keys[i]) != noCorrelation {
			r.Issues[ReusedCorrelations]++
		}
		if number[i] > 0 {
			r.Launches = append(r.Launches, l)
			number[i] = int32(len(r.Launches))
		} else if c.kernel[i] && worked[c.keys[i]>>32] && !c.capturing(l.Thread, l.Start) {
			r.LostKernels++
		}
	}
	for i := range r.Kernels {
		if k := &r.Kernels[i]; k.Launch >= 0 {
			k.Launch = number[k.Launch] - 1
		}
	}
	for i := range r.Graphs {
		if g := &r.Graphs[i]; g.Launch >= 0 {
			g.Launch = number[g.Launch] - 1
		}
	}
}
