package trace

import (
	"cmp"
	"slices"
	"strings"

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
	locations *capture.Index[location] // of launches and graph nodes
	launches  []int32                  // location of each launch
	created   []int32                  // location of each graph node at its creation
	origins   []int32                  // of each graph node, see origin
	waits     map[int32]capture.Wait   // by launch, see waits
	several   []uint8                  // kernels of each launch, at most 2
	classes   []kernel.Class           // by kernel name
	final     *capture.Index[location] // of kernels
	placed    map[placing]int32        // numbers of final locations
	operators []int8                   // rule of each operator, see ranges.OperatorOf
	python    capture.Python
	free      []int64 // when each device has run all kernels before
	counts    exportCounts
	stepNames map[int32]string // the first range of each step
}

// attribute finds the location of every launch and of every graph node's creation.
func attribute(rec *capture.Recording, options Options) *attribution {
	a := &attribution{rec: rec, python: rec.Python(), classes: kernel.Classes(rec.KernelNames, options.Phases),
		counts: exportCounts{Launches: len(rec.Launches), Ranges: len(rec.Ranges)}}
	sortNodes(rec.GraphNodes)
	lines := timelines(rec, options.Patterns)
	a.dropPolls(lines)
	capture.Collect(len(rec.Kernels))
	for i, c := range rec.Launches {
		t := &lines[c.Thread]
		t.Queries = append(t.Queries, int32(i))
	}
	for i, n := range rec.GraphNodes {
		t := &lines[n.Thread]
		t.Queries = append(t.Queries, int32(len(rec.Launches)+i))
	}
	hooked := map[int32]bool{} // processes
	for i := range lines {
		hooked[rec.Threads[i].Process] = hooked[rec.Threads[i].Process] || lines[i].Hooked()
	}
	a.locations = capture.NewIndex[location]()
	a.locations.Number(ranges.Unattributed)
	at := make([]int32, len(rec.Launches)+len(rec.GraphNodes))
	for i := range lines {
		lines[i].Sort()
		lines[i].Number(hooked[rec.Threads[i].Process])
		lines[i].Locate(a.moment, func(query int32, l location) { at[query] = a.locations.Number(l) })
	}
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

// timelines are the ranges whose names say something, by thread.
func timelines(rec *capture.Recording, patterns *Patterns) []ranges.Timeline {
	lines := make([]ranges.Timeline, len(rec.Threads))
	labels, labeled := make([]ranges.Label, len(rec.RangeNames)), make([]bool, len(rec.RangeNames))
	library, some := make([]bool, len(rec.Domains)), false
	for i, d := range rec.Domains {
		library[i] = slices.Contains(libraryDomains, strings.ToLower(d))
	}
	for _, r := range rec.Ranges {
		if library[r.Domain] {
			continue
		}
		l := &labels[r.Name]
		if !labeled[r.Name] {
			*l, labeled[r.Name] = patterns.Label(rec.RangeNames[r.Name]), true
		}
		if !l.Empty() {
			t := &lines[r.Thread]
			t.Ranges, some = append(t.Ranges, ranges.Range{Start: r.Start, End: r.End, Step: l.Step, Label: l}), true
		}
	}
	if some {
		rec.Ranges = nil // they make room
	}
	return lines
}

// dropPolls takes ranges of batches without a request in which no experts ran: the engine asked for work, and had
// none. Those in which they ran are steps of a data-parallel rank, for the tokens of others.
func (a *attribution) dropPolls(lines []ranges.Timeline) {
	var gemms [][]int64 // when they were launched, by thread
	for thread := range lines {
		for at := range lines[thread].Ranges {
			m := &lines[thread].Ranges[at]
			if m.Step == NoID || !ranges.BatchOf(m.Name).Dummy {
				continue
			}
			if gemms == nil {
				gemms = a.gemms()
			}
			own := gemms[thread]
			if at, _ := slices.BinarySearch(own, m.Start); at == len(own) || own[at] >= m.End {
				m.Step = NoID
			}
		}
	}
}

// gemms are the times at which expert GEMMs were launched, by thread.
func (a *attribution) gemms() [][]int64 {
	gemms := make([][]int64, len(a.rec.Threads))
	for i := range a.rec.Kernels {
		if k := &a.rec.Kernels[i]; k.Launch >= 0 && a.classes[k.Name].GEMM {
			l := &a.rec.Launches[k.Launch]
			gemms[l.Thread] = append(gemms[l.Thread], l.Start)
		}
	}
	for _, own := range gemms {
		slices.Sort(own)
	}
	return gemms
}

// moment is when a query's launch began, or its graph node was created.
func (a *attribution) moment(query int32) int64 {
	if n := len(a.rec.Launches); int(query) >= n {
		return a.rec.GraphNodes[int(query)-n].Created
	}
	return a.rec.Launches[query].Start
}

// rankEvents splits what ran by the process and device it ran on, in their order,
// and makes an event with its location of each kernel.
func (a *attribution) rankEvents() []*rankEvents {
	a.final = capture.NewIndex[location]()
	a.placed = map[placing]int32{}
	a.operators = make([]int8, len(a.rec.Operators))
	for i, name := range a.rec.Operators {
		a.operators[i] = ranges.OperatorOf(name)
	}
	a.origins = make([]int32, len(a.rec.GraphNodes))
	for i := range a.origins {
		a.origins[i] = origin(a.rec.GraphNodes, int32(i))
	}
	a.waits = waits(a.rec)
	a.free = slices.Repeat([]int64{never}, len(a.rec.Devices))
	byStart := func(x, y capture.Kernel) int { return cmp.Compare(x.Start, y.Start) }
	if !slices.IsSortedFunc(a.rec.Kernels, byStart) {
		slices.SortStableFunc(a.rec.Kernels, byStart)
	}
	a.several = make([]uint8, len(a.rec.Launches))
	count := make([]int, len(a.rec.Devices))
	for i := range a.rec.Kernels {
		k := &a.rec.Kernels[i]
		if count[k.Device]++; a.rec.Launched(k) {
			a.several[k.Launch] = min(a.several[k.Launch]+1, 2)
		}
	}
	ranks := make([]*rankEvents, len(a.rec.Devices))
	for i, d := range a.rec.Devices {
		ranks[i] = &rankEvents{device: d, events: make([]event, 0, count[i])}
	}
	for i := range a.rec.Kernels {
		a.addKernel(&a.rec.Kernels[i], ranks)
	}
	for _, g := range a.rec.Graphs {
		h := &ranks[g.Device].Hidden
		h.Launches, h.NS = h.Launches+1, h.NS+g.End-g.Start
	}
	a.launches, a.rec.Launches = nil, nil // they make room
	capture.Collect(len(a.rec.Kernels))
	// a device can be left empty: what it ran was given to another, was ignored, or was no kernel
	ranks = slices.DeleteFunc(ranks, func(r *rankEvents) bool { return len(r.events) == 0 && r.Hidden.Launches == 0 })
	slices.SortFunc(ranks, func(x, y *rankEvents) int {
		return cmp.Or(cmp.Compare(a.rec.Processes[x.device.Process], a.rec.Processes[y.device.Process]),
			cmp.Compare(x.device.Ordinal, y.device.Ordinal))
	})
	return ranks
}

// addKernel adds a kernel to its rank, unless a range asks to ignore it.
func (a *attribution) addKernel(k *capture.Kernel, ranks []*rankEvents) {
	at, launched, free := a.locationOf(k), a.rec.Launched(k), a.free[k.Device]
	a.free[k.Device] = max(free, k.End)
	if !launched {
		a.counts.Launchless++
	}
	if at < 0 {
		a.counts.Ignored++
		a.counts.IgnoredNS += k.End - k.Start
		return
	}
	r, e := ranks[k.Device], event{Start: k.Start, NS: k.End - k.Start, Place: at, Name: k.Name, Queued: -1}
	if launched {
		r.LaunchedNS += e.NS
		a.host(k, &e, free)
	}
	if k.GraphNode > 0 {
		a.counts.Replayed++
	}
	if e.NS == 0 && a.classes[k.Name].GEMM { // ran, but for how long is lost
		a.rec.LostKernels++
	}
	r.events = append(r.events, e)
}

// placing is what decides where a kernel ran: its name, the operator that launched it, where it was launched and,
// of a graph's, where its node was created, else −1.
type placing struct {
	name, at, created int32
	operator          int8
}

// locationOf is a kernel's location, −1 to ignore it.
func (a *attribution) locationOf(k *capture.Kernel) int32 {
	p := placing{name: k.Name, created: -1}
	if k.Launch >= 0 {
		p.at, p.operator = a.launches[k.Launch], a.operators[a.rec.Launches[k.Launch].Operator]
	}
	if k.GraphNode > 0 {
		id := a.rec.GraphNodeIDs[k.GraphNode-1]
		n := creation(a.rec.GraphNodes, a.rec.Devices[k.Device].Process, id, k.Start)
		if n >= 0 {
			n = a.origins[n]
		}
		if n >= 0 {
			p.created = a.created[n]
		} else {
			a.counts.Detached++
		}
	}
	at, known := a.placed[p]
	if !known {
		at = a.place(p)
		a.placed[p] = at
	}
	return at
}

// place gives a location its final number, −1 to ignore it: the range at capture before the range at replay, but for
// the step, and the phase that the strongest evidence gives.
func (a *attribution) place(p placing) int32 {
	l, class := a.locations.Values[p.at], &a.classes[p.name]
	if p.created >= 0 {
		if c := a.locations.Values[p.created]; c.Layer != NoID || c.Phase != "" || c.Expert != NoID || c.Operator != 0 {
			c.Step = l.Step
			l = c
		}
	}
	if l.Phase == ranges.PhaseIgnored {
		return -1
	}
	if class.Given {
		l.Phase, l.Evidence = class.Phase, ranges.ByUser
	} else {
		l.Phase, l.Evidence = ranges.PhaseBy(l, cmp.Or(p.operator, l.Operator), class.Phase)
	}
	l.Module, l.Operator = false, 0
	return a.final.Number(l)
}
