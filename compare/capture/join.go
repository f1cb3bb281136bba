package capture

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
)

// draft is a recording that is being filled in, as a source lists it. Its kinds of events can be filled in at the same
// time: each has fields and a numbering of threads of its own, until join.
type draft struct {
	*Recording
	processes   Index[int64]
	devices     Index[Device]
	kernelIDs   []uint32 // correlation ids, by kernel
	kernelNS    uint64   // of all kernels
	nodeThreads Index[int64]

	launchIDs   []uint32 // correlation ids, by launch
	ofKernel    []bool   // by launch: it launches a kernel, not a graph
	captures    []graphCapture
	callThreads Index[int64]

	rangeNames   interner
	rangeThreads Index[int64]
}

func newDraft() *draft { return &draft{Recording: &Recording{Operators: []string{""}}} }

// believable reports whether an event's times can be used, and counts it if not.
func (d *draft) believable(start, end int64) bool {
	if start < -TimeLimit || end > TimeLimit || end < start {
		atomic.AddInt64(&d.BadTimes, 1)
		return false
	}
	return true
}

// addKernel takes a kernel with the correlation id of its launch and the graph node that it replays, 0 for none, and
// reports whether it did: one with which the times of all add up to more than 64 bits is not believable.
func (d *draft) addKernel(k Kernel, correlation uint32, node int64) bool {
	if d.kernelNS += uint64(k.End - k.Start); d.kernelNS > math.MaxInt64 {
		d.kernelNS = math.MaxInt64
		atomic.AddInt64(&d.BadTimes, 1)
		return false
	}
	if node != 0 {
		d.GraphNodeIDs = append(d.GraphNodeIDs, node)
		k.GraphNode = int32(len(d.GraphNodeIDs))
	}
	d.Kernels = append(d.Kernels, k)
	d.kernelIDs = append(d.kernelIDs, correlation)
	return true
}

// device numbers a device of a process. A device beyond 32 bits is none that exists.
func (d *draft) device(process, ordinal int64) int32 {
	return d.devices.Number(Device{d.processes.Number(process), int32(min(max(ordinal, -1), math.MaxInt32))})
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

// processOf is the global id of a launch's process.
func (d *draft) processOf(l Call) int64 { return d.callThreads.Values[l.Thread] & processMask }

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

// addCall keeps a call that launches, waits, or begins or ends the capture of a graph.
func (d *draft) addCall(kind callKind, l Call, correlation uint32) {
	switch kind {
	case beginCapture, endCapture:
		d.captures = append(d.captures, graphCapture{l.Thread, l.Start, kind == beginCapture})
	case waitCall:
		d.Waits = append(d.Waits, l)
	case graphLaunch:
		d.GraphLaunches++
		fallthrough
	case kernelCall:
		d.Launches = append(d.Launches, l)
		d.launchIDs = append(d.launchIDs, correlation)
		d.ofKernel = append(d.ofKernel, kind == kernelCall)
	}
}

// capturing reports whether a thread captures a graph at a time: the capture's begin is
// the last before it, or its end the first of all.
func (d *draft) capturing(thread int32, at int64) bool {
	i, _ := slices.BinarySearchFunc(d.captures, graphCapture{thread: thread, at: at}, graphCapture.compare)
	if i > 0 && d.captures[i-1].thread == thread {
		return d.captures[i-1].begin
	}
	return i < len(d.captures) && d.captures[i].thread == thread && !d.captures[i].begin
}

// launched are the launches of a process, in the order of correlation ids and starts.
type launched struct {
	*draft
	order []int32
	last  int // the place of the one found last
}

// byProcess are the launches by the global id of their process.
func (d *draft) byProcess() map[int64]*launched {
	all := map[int64]*launched{}
	for i, l := range d.Launches {
		pid := d.processOf(l)
		p := all[pid]
		if p == nil {
			p = &launched{draft: d}
			all[pid] = p
		}
		p.order = append(p.order, int32(i))
	}
	for _, p := range all {
		slices.SortFunc(p.order, func(a, b int32) int { // in which they mostly are
			return cmp.Or(cmp.Compare(d.launchIDs[a], d.launchIDs[b]),
				cmp.Compare(d.Launches[a].Start, d.Launches[b].Start))
		})
	}
	return all
}

// find gives the launch with a correlation id, −1 for none: of several the last that began
// before the execution did, and the first if none did. It mostly is the one behind the launch found before.
func (p *launched) find(id uint32, start int64) int32 {
	is := func(at int) bool { return at >= 0 && at < len(p.order) && p.launchIDs[p.order[at]] == id }
	at := p.last + 1
	if !is(at) || is(at-1) || is(at+1) {
		at, _ = slices.BinarySearchFunc(p.order, id, func(l int32, id uint32) int {
			return cmp.Or(cmp.Compare(p.launchIDs[l], id), cmp.Compare(p.Launches[l].Start, start), -1)
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

// addRange takes a range.
func (d *draft) addRange(r Range) {
	if d.believable(r.Start, r.End) {
		d.Ranges = append(d.Ranges, r)
	}
}

// join completes the recording: one numbering of threads and processes, and every execution with its launch.
func (d *draft) join() *Recording {
	launches := d.byProcess()
	if len(launches) == 1 && slices.Equal(d.processes.Values, []int64{0}) { // no work names its process: the only one's
		d.processes = Index[int64]{Values: slices.Collect(maps.Keys(launches))}
	}
	d.joinLaunches(launches)
	threads := Index[int64]{}
	for _, calls := range [][]Call{d.Launches, d.Waits} {
		for i := range calls {
			calls[i].Thread = threads.Number(d.callThreads.Values[calls[i].Thread])
		}
	}
	for i := range d.Ranges {
		d.Ranges[i].Thread = threads.Number(d.rangeThreads.Values[d.Ranges[i].Thread])
	}
	for i := range d.GraphNodes {
		d.GraphNodes[i].Thread = threads.Number(d.nodeThreads.Values[d.GraphNodes[i].Thread])
	}
	for _, tid := range threads.Values {
		d.Threads = append(d.Threads, d.processes.Number(tid&processMask))
	}
	d.Processes, d.Devices, d.RangeNames = d.processes.Values, d.devices.Values, d.rangeNames.valid()
	return d.Recording
}

// joinLaunches gives kernels their launches, and leaves out the launches of nothing. It counts those, once each, whose
// kernel is lost: of a process that ran something on a GPU, and not while a graph was captured.
func (d *draft) joinLaunches(launches map[int64]*launched) {
	of, worked := make([]*launched, len(d.devices.Values)), map[int64]bool{} // by device, by process
	for i, device := range d.devices.Values {
		pid := d.processes.Values[device.Process]
		of[i], worked[pid] = launches[pid], true
	}
	number := make([]int32, len(d.Launches)) // of launches, from 1 on
	find := func(device int32, id uint32, start int64) int32 {
		if p := of[device]; p != nil && id != noCorrelation {
			if launch := p.find(id, start); launch >= 0 {
				number[launch] = 1
				return launch
			}
		}
		return -1
	}
	for i := range d.Kernels {
		k := &d.Kernels[i]
		k.Launch = find(k.Device, d.kernelIDs[i], k.Start)
	}
	for _, g := range d.Graphs {
		find(g.Device, g.Correlation, g.Start)
	}
	slices.SortFunc(d.captures, graphCapture.compare)
	all, lost := d.Launches, map[Call]bool{}
	d.Launches = all[:0]
	for i, l := range all {
		if number[i] > 0 {
			d.Launches = append(d.Launches, l)
			number[i] = int32(len(d.Launches))
		} else if d.ofKernel[i] && worked[d.processOf(l)] && !d.capturing(l.Thread, l.Start) {
			lost[l] = true
		}
	}
	for i := range d.Kernels {
		if k := &d.Kernels[i]; k.Launch >= 0 {
			k.Launch = number[k.Launch] - 1
			delete(lost, d.Launches[k.Launch]) // recorded twice
		}
	}
	d.LostKernels = int64(len(lost))
}
