package capture

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// merger puts what the readers found into one recording, with one numbering of
// threads and processes.
type merger struct {
	rec       *Recording
	threads   *denseIDs[int64]
	processes *denseIDs[int64]
	openEnd   int64 // when ranges end that were never closed
}

// newMerger begins a recording with what ran.
func newMerger(a *activityReader) *merger {
	m := &merger{threads: newIDs(), processes: a.processes}
	m.rec = &Recording{
		Issues: a.issues, KernelNames: a.names, Devices: a.devices.values, Streams: a.streams.values, Domains: []string{""}, Operators: []string{""},
		Kernels: a.kernels, GraphNodeIDs: a.nodeIDs, MemoryOps: a.memoryOps, GraphNodes: a.nodes, Graphs: a.graphs, End: a.end,
	}
	number := m.renumber(a.threads)
	for i := range m.rec.GraphNodes {
		m.rec.GraphNodes[i].Thread = number[m.rec.GraphNodes[i].Thread]
	}
	return m
}

// renumber gives a reader's threads their numbers in the recording.
func (m *merger) renumber(own *denseIDs[int64]) []int32 {
	to := make([]int32, len(own.values))
	for i, tid := range own.values {
		to[i] = m.threads.of(tid)
	}
	return to
}

// launches joins every execution with the call that launched it. Where several
// calls of a process carry the same correlation id, the last one that began
// before the execution did is the one, and the first one if none did.
func (m *merger) launches(readers []*launchReader, index *correlationIndex) {
	starts := m.sortLaunches(readers, index.pairs)
	launchOf := func(device int32, id, start int64) int32 {
		pair := index.find(m.rec.Devices[device].Process, id)
		if pair < 0 || starts[pair] == starts[pair+1] {
			return -1
		}
		same := m.rec.Launches[starts[pair]:starts[pair+1]]
		after, _ := slices.BinarySearchFunc(same, start, func(l Launch, at int64) int { return cmp.Or(cmp.Compare(l.Start, at), -1) })
		return starts[pair] + int32(max(after-1, 0))
	}
	var wait sync.WaitGroup
	half := len(m.rec.Kernels) / 2
	for _, list := range [][]Kernel{m.rec.Kernels[:half], m.rec.Kernels[half:], m.rec.MemoryOps} {
		wait.Go(func() {
			for i := range list {
				list[i].Launch = launchOf(list[i].Device, list[i].Correlation, list[i].Start)
			}
		})
	}
	wait.Wait()
	for i := range m.rec.Graphs {
		g := &m.rec.Graphs[i]
		g.Launch = launchOf(g.Device, g.Correlation, g.Start)
	}
}

// sortLaunches puts the launches in the order of their pairs, those of one pair in
// the order of their starts, and returns where each pair's begin.
func (m *merger) sortLaunches(readers []*launchReader, pairs int) (starts []int32) {
	starts = make([]int32, pairs+2)
	for _, r := range readers {
		m.rec.Issues.add(r.issues)
		m.rec.APICalls += r.calls
		m.rec.LostKernels += r.lostKernels()
		for i := range r.launches {
			starts[r.launches[i].pair+2]++
		}
	}
	for i := 2; i < len(starts); i++ {
		m.rec.Issues.ReusedCorrelations += int64(max(starts[i]-1, 0))
		starts[i] += starts[i-1]
	}
	m.rec.Launches = make([]Launch, starts[pairs+1])
	for _, r := range readers {
		number := m.renumber(r.threads)
		for _, l := range r.launches {
			l.Thread = number[l.Thread]
			m.rec.Launches[starts[l.pair+1]] = l.Launch
			starts[l.pair+1]++
		}
	}
	if m.rec.Issues.ReusedCorrelations > 0 {
		for pair := range pairs {
			slices.SortStableFunc(m.rec.Launches[starts[pair]:starts[pair+1]], func(a, b Launch) int { return cmp.Compare(a.Start, b.Start) })
		}
	}
	return starts[:pairs+1]
}

func (m *merger) ranges(r *rangeReader) {
	m.rec.Ranges, m.rec.RangeNames, m.rec.RangesEnd = r.ranges, r.names.names, r.end
	m.rec.End = max(m.rec.End, r.end)
	m.openEnd = m.rec.End
	if r.statistics {
		m.openEnd = r.end // as the profiler's statistics have it
	}
	m.rec.Issues.add(r.issues)
	number := m.renumber(r.threads)
	for i := range m.rec.Ranges {
		m.rec.Ranges[i].Thread = number[m.rec.Ranges[i].Thread]
	}
	for i, name := range m.rec.RangeNames {
		m.rec.RangeNames[i] = strings.ToValidUTF8(name, "\uFFFD")
	}
	for _, name := range r.domains.names[1:] {
		domain := ""
		if name >= 0 {
			domain = m.rec.RangeNames[name]
		}
		m.rec.Domains = append(m.rec.Domains, domain)
	}
}

// finish closes open ranges and lists the threads and processes.
func (m *merger) finish() {
	for i := range m.rec.Ranges {
		if r := &m.rec.Ranges[i]; r.End == openEnd {
			r.End = max(m.openEnd, r.Start)
		}
	}
	for _, tid := range m.threads.values {
		m.rec.Threads = append(m.rec.Threads, Thread{ID: tid, Process: m.processes.of(tid & processMask)})
	}
	m.rec.Processes = m.processes.values
}
