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
}

// newMerger begins a recording with what ran.
func newMerger(a *activityReader) *merger {
	m := &merger{threads: newIDs(), processes: a.processes}
	m.rec = &Recording{
		Issues: a.issues, NoPIDs: a.noPIDs, KernelNames: a.names, Devices: a.devices.values, Streams: a.streams.values,
		Domains: []string{""}, Operators: []string{""},
		Kernels: a.kernels, GraphNodeIDs: a.nodeIDs, GraphNodes: a.nodes, Graphs: a.graphs, End: a.end,
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
func (m *merger) launches(readers []*launchReader, index *correlationIndex, correlations shortIDs) {
	starts := m.placeLaunches(readers, index.launches)
	launchOf := func(device int32, id, start int64) int32 {
		pair := index.find(m.rec.Devices[device].Process, id)
		switch {
		case pair < 0 || len(m.rec.Launches) == 0:
			return -1
		case starts == nil:
			return pair
		case starts[pair] == starts[pair+1]:
			return -1
		}
		same := m.rec.Launches[starts[pair]:starts[pair+1]]
		after, _ := slices.BinarySearchFunc(same, start,
			func(l Launch, at int64) int { return cmp.Or(cmp.Compare(l.Start, at), -1) })
		return starts[pair] + int32(max(after-1, 0))
	}
	var wait sync.WaitGroup
	half := len(m.rec.Kernels) / 2
	for _, list := range [][]Kernel{m.rec.Kernels[:half], m.rec.Kernels[half:]} {
		wait.Go(func() {
			for i := range list {
				list[i].Launch = launchOf(list[i].Device, correlations.id(list[i].Launch), list[i].Start)
			}
		})
	}
	wait.Wait()
	for i := range m.rec.Graphs {
		g := &m.rec.Graphs[i]
		g.Launch = launchOf(g.Device, g.Correlation, g.Start)
	}
}

// placeLaunches takes over the launches by pair and returns where those of each pair
// begin, nil where every pair has one. Only correlation ids that come again need a
// second array: the first is otherwise closed up in place.
func (m *merger) placeLaunches(readers []*launchReader, byPair []Launch) (starts []int32) {
	var again []laterLaunch
	numbers := make([][]int32, len(readers))
	for i, r := range readers {
		m.rec.Issues.add(r.issues)
		m.rec.APICalls += r.calls
		m.rec.LostKernels += r.lostKernels()
		again = append(again, r.again...)
		numbers[i] = m.renumber(r.threads)
	}
	m.rec.Issues[ReusedCorrelations] += int64(len(again))
	m.rec.Launches = byPair
	if len(again) > 0 || slices.ContainsFunc(byPair, func(l Launch) bool { return l.Thread == 0 }) {
		starts = m.closeUp(again)
	}
	for i := range m.rec.Launches {
		l := &m.rec.Launches[i]
		l.Thread, l.Operator = numbers[l.Operator][l.Thread-1], 0
	}
	return starts
}

// closeUp leaves no place between the launches, and gives those that come again one
// behind the first of their pair, in the order of their starts.
func (m *merger) closeUp(again []laterLaunch) (starts []int32) {
	from := m.rec.Launches
	starts = make([]int32, len(from)+2)
	for pair := range from {
		starts[pair+2] = min(from[pair].Thread, 1)
	}
	for _, l := range again {
		starts[l.pair+2]++
	}
	for i := 2; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	to := from // which is never ahead of from
	if len(again) > 0 {
		to = make([]Launch, starts[len(from)+1])
	}
	for pair, l := range from {
		if l.Thread > 0 {
			to[starts[pair+1]] = l
			starts[pair+1]++
		}
	}
	for _, l := range again {
		to[starts[l.pair+1]] = l.Launch
		starts[l.pair+1]++
	}
	starts = starts[:len(from)+1]
	for pair := range from {
		if of := to[starts[pair]:starts[pair+1]]; len(of) > 1 {
			slices.SortStableFunc(of, func(a, b Launch) int {
				return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Operator, b.Operator))
			})
		}
	}
	m.rec.Launches = to[:starts[len(from)]]
	return starts
}

func (m *merger) ranges(r *rangeReader) {
	m.rec.Ranges, m.rec.RangeNames, m.rec.RangesEnd = r.ranges, r.names.names, r.end
	m.rec.End = max(m.rec.End, r.end)
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
			r.End = max(m.rec.End, r.Start)
		}
	}
	for _, tid := range m.threads.values {
		m.rec.Threads = append(m.rec.Threads, Thread{ID: tid, Process: m.processes.of(tid & processMask)})
	}
	m.rec.Processes = m.processes.values
}
