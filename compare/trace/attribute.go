package trace

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
)

// Libraries annotate their own calls in domains of their own. Their ranges are
// never steps, layers or phases of the model.
var libraryDomains = []string{"nccl", "cccl", "cub", "thrust", "cublas", "cublaslt", "cudnn", "cufft", "cusparse",
	"cusolver", "nvshmem", "ucx", "libcudacxx", "libkvikio"}

// attribution gives every kernel of a recording its location: first every launch
// and every graph node by the ranges around them, then the kernels by these and by
// their names.
type attribution struct {
	rec       *capture.Recording
	options   Options
	labels    []ranges.Label           // by range name
	locations *capture.Index[location] // of launches and graph nodes
	launches  []int32                  // location of each launch
	created   []int32                  // location of each graph node at its creation
	origins   []int32                  // of each graph node, see origins
	replays   map[[2]int32]int32
	waited    map[int32]capture.Wait   // by launch, see waits
	classes   []kernel.Class           // by kernel name
	final     *capture.Index[location] // of kernels
	direct    []int32                  // by location: the final one plus 1, where no name changes it
	recent    []recentLocation         // by kernel name
	operators []int8                   // rule of each operator, see ranges.OperatorOf
	python    capture.Python
	counts    exportCounts
	stepNames map[int32]string // the first range of each step
}

// attribute finds the location of every launch and of every graph node's creation.
func attribute(rec *capture.Recording, options Options) *attribution {
	a := &attribution{
		rec: rec, options: options, labels: make([]ranges.Label, len(rec.RangeNames)),
		python: rec.Python(), counts: exportCounts{Launches: len(rec.Launches), Ranges: len(rec.Ranges)},
	}
	lines := make([]ranges.Timeline, len(rec.Threads))
	sortNodes(rec.GraphNodes)
	a.classes = kernel.Classes(rec.KernelNames, options.Phases)
	a.addRanges(lines, options.Patterns)
	a.dropPolls(lines)
	capture.Collect(len(rec.Kernels))
	a.addQueries(lines)
	var wait sync.WaitGroup
	at := make([]int32, len(rec.Launches)+len(rec.GraphNodes))
	found := make([]*capture.Index[location], len(lines))
	hooked := map[int32]bool{} // processes
	for i := range lines {
		hooked[rec.Threads[i].Process] = hooked[rec.Threads[i].Process] || lines[i].Hooked()
	}
	for i := range lines {
		wait.Go(func() {
			lines[i].Sort()
			lines[i].Number(hooked[rec.Threads[i].Process])
			found[i] = capture.NewIndex[location]()
			lines[i].Locate(a.moment, func(query int32, l location) { at[query] = found[i].Number(l) })
		})
	}
	wait.Wait()
	capture.Collect(len(rec.Kernels))
	a.locations = capture.NewIndex[location]()
	a.locations.Number(ranges.Unattributed)
	for i := range lines { // from each thread's own numbers of locations to common ones
		number := make([]int32, len(found[i].Values))
		for n, l := range found[i].Values {
			number[n] = a.locations.Number(l)
		}
		wait.Go(func() {
			for _, q := range lines[i].Queries {
				at[q] = number[at[q]]
			}
		})
	}
	wait.Wait()
	a.launches, a.created = at[:len(rec.Launches)], at[len(rec.Launches):]
	a.nameSteps(lines)
	return a
}

// nameSteps names each step by its first range.
func (a *attribution) nameSteps(lines []ranges.Timeline) {
	a.stepNames = map[int32]string{}
	for _, line := range lines {
		for _, m := range line.Ranges {
			if m.Step != NoID && m.Phase != ranges.PhaseIgnored && a.stepNames[m.Step] == "" {
				a.stepNames[m.Step] = m.Name
			}
		}
	}
}

// addRanges labels the ranges and gives those whose name says something to their
// threads.
func (a *attribution) addRanges(lines []ranges.Timeline, patterns *Patterns) {
	rec := a.rec
	named := make([]bool, len(rec.RangeNames))
	user := make([]bool, len(rec.Domains))
	for i, d := range rec.Domains {
		user[i] = !slices.Contains(libraryDomains, strings.ToLower(d))
	}
	count := make([]int, len(lines))
	for _, r := range rec.Ranges {
		if user[r.Domain] && !named[r.Name] {
			a.labels[r.Name], named[r.Name] = patterns.Label(rec.RangeNames[r.Name]), true
		}
		if user[r.Domain] && !a.labels[r.Name].Empty() {
			count[r.Thread]++
		}
	}
	for i, n := range count {
		lines[i].Ranges = make([]ranges.Range, 0, n)
	}
	for _, r := range rec.Ranges {
		if l := &a.labels[r.Name]; user[r.Domain] && !l.Empty() {
			t := &lines[r.Thread]
			t.Ranges = append(t.Ranges, ranges.Range{Start: r.Start, End: r.End, Step: l.Step, Label: l})
		}
	}
	if slices.ContainsFunc(lines, func(t ranges.Timeline) bool { return len(t.Ranges) > 0 }) {
		rec.Ranges = nil
	}
}

// dropPolls takes ranges of batches without a request in which no experts ran: the engine asked for work, and had
// none. Those in which they ran are steps of a data-parallel rank, for the tokens of others.
func (a *attribution) dropPolls(lines []ranges.Timeline) {
	dummies := make([][]*ranges.Range, len(lines))
	some := false
	for i := range lines {
		for at := range lines[i].Ranges {
			if m := &lines[i].Ranges[at]; m.Step != NoID && ranges.BatchOf(m.Name).Dummy {
				dummies[i], some = append(dummies[i], m), true
			}
		}
	}
	if !some {
		return
	}
	for _, own := range dummies {
		slices.SortFunc(own, func(x, y *ranges.Range) int { return cmp.Compare(x.Start, y.Start) })
	}
	ran := map[*ranges.Range]bool{}
	for i := range a.rec.Kernels {
		k := &a.rec.Kernels[i]
		if k.Launch < 0 || !a.classes[k.Name].GEMM {
			continue
		}
		l := &a.rec.Launches[k.Launch]
		own := dummies[l.Thread]
		at, _ := slices.BinarySearchFunc(own, l.Start+1,
			func(m *ranges.Range, t int64) int { return cmp.Compare(m.Start, t) })
		if at > 0 && l.Start < own[at-1].End {
			ran[own[at-1]] = true
		}
	}
	for i := range lines {
		for _, m := range dummies[i] {
			if !ran[m] {
				m.Step = NoID
			}
		}
	}
}

// addQueries asks for the location of every launch and every graph node's creation, in
// one pass to count and one to fill.
func (a *attribution) addQueries(lines []ranges.Timeline) {
	count := make([]int, len(lines))
	for _, c := range a.rec.Launches {
		count[c.Thread]++
	}
	for _, n := range a.rec.GraphNodes {
		count[n.Thread]++
	}
	for i, n := range count {
		lines[i].Queries = make([]int32, 0, n)
	}
	for i, c := range a.rec.Launches {
		t := &lines[c.Thread]
		t.Queries = append(t.Queries, int32(i))
	}
	for i, n := range a.rec.GraphNodes {
		t := &lines[n.Thread]
		t.Queries = append(t.Queries, int32(len(a.rec.Launches)+i))
	}
}

// moment is when a query's launch began, or its graph node was created.
func (a *attribution) moment(query int32) int64 {
	if n := len(a.rec.Launches); int(query) >= n {
		return a.rec.GraphNodes[int(query)-n].Created
	}
	return a.rec.Launches[query].Start
}

// rankEvents splits what ran by the process and device it ran on, in their order,
// and gives each kernel its location.
func (a *attribution) rankEvents() []*rankEvents {
	a.final = capture.NewIndex[location]()
	a.recent = make([]recentLocation, len(a.rec.KernelNames))
	a.operators = make([]int8, len(a.rec.Operators))
	for i, name := range a.rec.Operators {
		a.operators[i] = ranges.OperatorOf(name)
	}
	a.origins = origins(a.rec.GraphNodes)
	a.replays = map[[2]int32]int32{}
	ranks := make([]*rankEvents, len(a.rec.Devices))
	count := make([]int, len(a.rec.Devices))
	for i := range a.rec.Kernels {
		count[a.rec.Kernels[i].Device]++
	}
	for i, d := range a.rec.Devices {
		ranks[i] = &rankEvents{device: d, kernels: make([]int32, 0, count[i])}
	}
	for _, s := range a.rec.Streams {
		ranks[s.Device].Rank.Streams++
	}
	for i := range a.rec.Kernels {
		a.addKernel(int32(i), ranks)
	}
	for _, g := range a.rec.Graphs {
		h := &ranks[g.Device].Hidden
		h.Launches, h.NS = h.Launches+1, h.NS+g.End-g.Start
	}
	a.addEvents(ranks)
	// a device can be left empty: what it ran was given to another, was ignored, or was no kernel
	ranks = slices.DeleteFunc(ranks, func(r *rankEvents) bool { return len(r.events) == 0 && r.Hidden.Launches == 0 })
	slices.SortFunc(ranks, func(x, y *rankEvents) int {
		return cmp.Or(cmp.Compare(a.rec.Processes[x.device.Process], a.rec.Processes[y.device.Process]),
			cmp.Compare(x.device.Ordinal, y.device.Ordinal))
	})
	return ranks
}

// addEvents makes the events of the ranks from their kernels.
func (a *attribution) addEvents(ranks []*rankEvents) {
	for _, r := range ranks {
		r.Late = a.lateness(r)
		r.events = a.hosts(r)
	}
	a.launches, a.rec.Launches = nil, nil // they make room
	capture.Collect(len(a.rec.Kernels))
	for _, r := range ranks {
		for j, at := range r.kernels {
			k := &a.rec.Kernels[at]
			e := &r.events[j]
			e.Start, e.NS, e.Place, e.Name = k.Start, k.End-k.Start, k.GraphNode, k.Name
		}
		r.kernels = nil
	}
}

// addKernel adds a kernel to its rank, unless a range asks to ignore it, with its
// location in place of the graph node.
func (a *attribution) addKernel(i int32, ranks []*rankEvents) {
	k := &a.rec.Kernels[i]
	at, launched := a.locationOf(k), a.rec.Launched(k)
	if !launched {
		a.counts.Launchless++
	}
	if at < 0 {
		a.counts.Ignored++
		a.counts.IgnoredNS += k.End - k.Start
		return
	}
	r := ranks[k.Device]
	if launched {
		r.LaunchedNS += k.End - k.Start
	}
	if k.GraphNode > 0 {
		a.counts.Replayed++
	}
	if k.Start == k.End && a.classes[k.Name].GEMM { // ran, but for how long is lost
		a.rec.LostKernels++
	}
	k.GraphNode = at
	r.kernels = append(r.kernels, i)
}

// recentLocation is the final location of kernels of one name at one location, that
// one operator launched.
type recentLocation struct {
	known    bool
	operator int8
	from, to int32
}

// locationOf is a kernel's location, −1 to ignore it: the range at capture before
// the range at replay, a range's word for the phase before the kernel's name.
func (a *attribution) locationOf(k *capture.Kernel) int32 {
	at, operator := int32(0), int8(0)
	if k.Launch >= 0 {
		at, operator = a.launches[k.Launch], a.operators[a.rec.Launches[k.Launch].Operator]
	}
	if k.GraphNode > 0 {
		origin := int32(-1)
		id := a.rec.GraphNodeIDs[k.GraphNode-1]
		if n := creation(a.rec.GraphNodes, a.rec.Devices[k.Device].Process, id, k.Start); n >= 0 {
			origin = a.origins[n]
		}
		if origin >= 0 {
			at = a.replay(at, a.created[origin])
		} else {
			a.counts.Detached++
		}
	}
	last := &a.recent[k.Name]
	if !last.known || last.from != at || last.operator != operator {
		*last = recentLocation{true, operator, at, a.finalOf(at, k.Name, operator)}
	}
	return last.to
}

// replay is the location of a kernel replayed at one location whose node was created
// at another: the step is the replay's, the rest the creation's where it says.
func (a *attribution) replay(replayed, created int32) int32 {
	key := [2]int32{replayed, created}
	if i, ok := a.replays[key]; ok {
		return i
	}
	l, c := a.locations.Values[replayed], a.locations.Values[created]
	if c.Layer != NoID || c.Phase != "" || c.Expert != NoID || c.Operator != 0 {
		l.Layer, l.Phase, l.Expert, l.Module, l.Evidence, l.Operator = c.Layer, c.Phase, c.Expert, c.Module, c.Evidence,
			c.Operator
	}
	a.replays[key] = a.locations.Number(l)
	return a.replays[key]
}

// finalOf is the location with the phase that the strongest evidence gives.
func (a *attribution) finalOf(at, name int32, operator int8) int32 {
	given := a.classes[name].Given
	if int(at) < len(a.direct) && a.direct[at] > 0 && !given {
		return a.direct[at] - 1
	}
	l := a.locations.Values[at]
	if l.Phase == ranges.PhaseIgnored {
		return -1
	}
	ranged := l.Phase != "" && !l.Module && !given
	if given {
		l.Phase, l.Evidence, l.Module, l.Operator = a.classes[name].Phase, ranges.ByUser, false, 0
		return a.final.Number(l)
	}
	l.Phase, l.Evidence = ranges.PhaseBy(l, cmp.Or(operator, l.Operator), a.classes[name].Phase)
	l.Module, l.Operator = false, 0
	to := a.final.Number(l)
	if ranged { // whatever the kernel
		a.direct = append(a.direct, make([]int32, max(0, len(a.locations.Values)-len(a.direct)))...)
		a.direct[at] = to + 1
	}
	return to
}
