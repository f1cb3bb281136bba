package trace

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/steps"
	"github.com/moebalance/moebalance/router"
)

// attribution makes a summary of a recording. Every kernel gets its location: first every launch
// and every graph node by the ranges around them, then the kernels by these and by
// their names.
type attribution struct {
	*exportSummary
	rec       *capture.Recording
	around    capture.Index[location] // locations of launches and graph nodes
	launches  []int32                 // location of each launch
	nodes     []int32                 // of each graph node where its stream was captured, −1 where that is not recorded
	operators []int8                  // rule of each operator, see ranges.OperatorOf
	placed    map[placing]int32       // numbers of locations of kernels
	waits     map[int32]capture.Call  // by launch, see waits
	several   []uint8                 // kernels of each launch, at most 2
	python    capture.Python
	free      []int64 // when each device has run all kernels before

	// Numbers of kernels: without a launch, replayed by graphs, replayed by graphs that were made before the capture, in
	// ranges that ask to be ignored, and expert GEMMs without a duration.
	launchless, replayed, detached, ignored, zero int64
}

// attribute uses a recording up.
func attribute(path string, rec *capture.Recording, o Options) *exportSummary {
	a := &attribution{rec: rec, python: rec.Python(), placed: map[placing]int32{}, waits: waits(rec),
		free: slices.Repeat([]int64{never}, len(rec.Devices)), several: make([]uint8, len(rec.Launches)),
		exportSummary: &exportSummary{Names: rec.KernelNames, Classes: kernel.Classes(rec.KernelNames, o.Phases),
			StepNames: map[int32]string{}}}
	a.Export = Export{Path: path, NsysVersion: rec.Metadata.NsysVersion, SchemaVersion: rec.Metadata.SchemaVersion,
		Kernels: int64(len(rec.Kernels)), Launches: rec.APICalls, Ranges: int64(len(rec.Ranges)),
		GraphMode: "none", GPU: rec.Metadata.GPU, CapturedNS: router.Stated(rec.Metadata.SessionUTC)}
	for _, name := range rec.Operators {
		a.operators = append(a.operators, ranges.OperatorOf(name))
	}
	slices.SortStableFunc(rec.Kernels, func(x, y capture.Kernel) int {
		return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.End, y.End), cmp.Compare(x.Device, y.Device),
			cmp.Compare(x.Launch, y.Launch))
	})
	rec.Kernels = slices.Compact(rec.Kernels)
	a.recognize()
	a.locate(o.Patterns)
	capture.Collect(len(rec.Kernels))
	a.addKernels()
	a.describe()
	return a.exportSummary
}

// recognize makes GEMMs of experts of those whose name serves dense layers too, where all of a name run behind a router
// and before the next norm or attention.
func (a *attribution) recognize() {
	last, routed := make([]steps.Anchor, len(a.rec.Devices)), map[int32]bool{}
	for _, k := range a.rec.Kernels {
		switch c := &a.Classes[k.Name]; c.Launch.Anchor {
		case steps.Router, steps.Attention, steps.Norm:
			last[k.Device] = c.Launch.Anchor
		default:
			if c.MayBeExperts {
				so, known := routed[k.Name]
				routed[k.Name] = (so || !known) && last[k.Device] == steps.Router
			}
		}
	}
	for name, so := range routed {
		if c := &a.Classes[name]; so {
			c.Phase, c.GEMM, c.Launch.Anchor = PhaseExperts, true, steps.ExpertGEMM
		}
	}
}

// locate finds the location of every launch and of every graph node's creation.
func (a *attribution) locate(patterns *ranges.Patterns) {
	rec := a.rec
	slices.SortStableFunc(rec.GraphNodes, func(x, y capture.GraphNode) int { // as creation and origin take them
		return cmp.Or(cmp.Compare(x.Process, y.Process), cmp.Compare(x.ID, y.ID), cmp.Compare(x.Created, y.Created))
	})
	lines := a.timelines(patterns)
	capture.Collect(len(rec.Kernels))
	moments := make([]int64, 0, len(rec.Launches)+len(rec.GraphNodes))
	ask := func(thread int32, at int64) {
		lines[thread].Queries, moments = append(lines[thread].Queries, int32(len(moments))), append(moments, at)
	}
	for _, l := range rec.Launches {
		ask(l.Thread, l.Start)
	}
	for _, n := range rec.GraphNodes {
		ask(n.Thread, n.Created)
	}
	hooked := map[int32]bool{} // processes
	for i := range lines {
		hooked[rec.Threads[i]] = hooked[rec.Threads[i]] || lines[i].Hooked()
	}
	moment := func(query int32) int64 { return moments[query] }
	a.around.Number(ranges.Unattributed)
	at := make([]int32, len(moments))
	for i := range lines {
		line := &lines[i]
		line.Number(hooked[rec.Threads[i]])
		line.Locate(moment, func(query int32, l location) { at[query] = a.around.Number(l) })
		for _, m := range line.Ranges { // a step has the name of its first range
			if m.Step != NoID && m.Phase != ranges.PhaseIgnored && a.StepNames[m.Step] == "" {
				a.StepNames[m.Step] = m.Name
			}
		}
	}
	a.launches, a.nodes = at[:len(rec.Launches)], make([]int32, len(rec.GraphNodes))
	for i := range a.nodes {
		if a.nodes[i] = origin(rec.GraphNodes, int32(i)); a.nodes[i] >= 0 {
			a.nodes[i] = at[len(rec.Launches)+int(a.nodes[i])]
		}
	}
}

// timelines are the ranges whose names say something, by thread.
func (a *attribution) timelines(patterns *ranges.Patterns) []ranges.Timeline {
	rec := a.rec
	lines, labels := make([]ranges.Timeline, len(rec.Threads)), make([]ranges.Label, len(rec.RangeNames))
	for i, name := range rec.RangeNames {
		labels[i] = patterns.Label(name)
	}
	for _, r := range rec.Ranges {
		if l, t := &labels[r.Name], &lines[r.Thread]; l.Location != ranges.Unattributed {
			t.Ranges = append(t.Ranges, ranges.Range{Start: r.Start, End: r.End, Step: l.Step, Label: l})
		}
	}
	rec.Ranges = nil // they make room
	a.shareSteps(lines)
	a.dropPolls(lines)
	return lines
}

// shareSteps gives the threads of a process the steps of the only one that marks any: the others launch its
// microbatches, or the backward pass.
func (a *attribution) shareSteps(lines []ranges.Timeline) {
	marks := map[int32][]ranges.Range{} // by process, none where several threads mark steps
	own := make([]bool, len(lines))
	for i, process := range a.rec.Threads {
		steps := slices.DeleteFunc(slices.Clone(lines[i].Ranges), func(m ranges.Range) bool { return m.Step == NoID })
		if own[i] = len(steps) > 0; own[i] {
			if _, several := marks[process]; several {
				steps = nil
			}
			marks[process] = steps
		}
	}
	for i, process := range a.rec.Threads {
		if !own[i] {
			lines[i].Ranges = append(lines[i].Ranges, marks[process]...)
		}
	}
}

// dropPolls takes ranges of batches without a request in which no experts ran: the engine asked for work, and had
// none. Those in which they ran are steps of a data-parallel rank, for the tokens of others.
func (a *attribution) dropPolls(lines []ranges.Timeline) {
	gemms := map[int32][]int64{} // when expert GEMMs were launched, by process
	for i := range a.rec.Kernels {
		if k := &a.rec.Kernels[i]; k.Launch >= 0 && a.Classes[k.Name].GEMM {
			l := &a.rec.Launches[k.Launch]
			process := a.rec.Threads[l.Thread]
			gemms[process] = append(gemms[process], l.Start)
		}
	}
	for _, own := range gemms {
		slices.Sort(own)
	}
	for thread, process := range a.rec.Threads {
		own := gemms[process]
		for i := range lines[thread].Ranges {
			m := &lines[thread].Ranges[i]
			at, _ := slices.BinarySearch(own, m.Start)
			if m.Step != NoID && (at == len(own) || own[at] >= m.End) && ranges.BatchOf(m.Name).Dummy {
				m.Step = NoID
			}
		}
	}
}

// addKernels makes an event with its location of each kernel, by the process and device it ran on, in their order.
func (a *attribution) addKernels() {
	rec := a.rec
	count := make([]int, len(rec.Devices))
	for i := range rec.Kernels {
		k := &rec.Kernels[i]
		if count[k.Device]++; k.Launch >= 0 {
			a.several[k.Launch] = min(a.several[k.Launch]+1, 2)
		}
	}
	for i, d := range rec.Devices {
		a.Ranks = append(a.Ranks, &rankEvents{device: d, events: make([]event, 0, count[i])})
	}
	for i := range rec.Kernels {
		a.addKernel(&rec.Kernels[i])
	}
	for _, g := range rec.Graphs {
		h := &a.Ranks[g.Device].Hidden
		h.Launches, h.NS = h.Launches+1, h.NS+g.End-g.Start
	}
	// a device can be left empty: what it ran was given to another, was ignored, or was no kernel
	a.Ranks = slices.DeleteFunc(a.Ranks, func(r *rankEvents) bool { return len(r.events) == 0 && r.Hidden.Launches == 0 })
	slices.SortFunc(a.Ranks, func(x, y *rankEvents) int {
		return cmp.Or(cmp.Compare(rec.Processes[x.device.Process], rec.Processes[y.device.Process]),
			cmp.Compare(x.device.Ordinal, y.device.Ordinal))
	})
}

// addKernel adds a kernel to its rank, unless a range asks to ignore it.
func (a *attribution) addKernel(k *capture.Kernel) {
	free := a.free[k.Device]
	a.free[k.Device] = max(free, k.End)
	if k.Launch < 0 {
		a.launchless++
	}
	e := event{Start: k.Start, NS: k.End - k.Start, Place: a.locationOf(k), Name: k.Name, Stream: k.Stream, Queued: -1}
	if e.Place < 0 {
		a.ignored++
		return
	}
	r := a.Ranks[k.Device]
	if k.Launch >= 0 {
		a.host(k, &e, free)
	}
	if e.NS == 0 && a.Classes[k.Name].GEMM {
		a.zero++
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
		n := creation(a.rec.GraphNodes, a.rec.Devices[k.Device].Process, a.rec.GraphNodeIDs[k.GraphNode-1], k.Start)
		if n >= 0 {
			p.created = a.nodes[n]
		}
		if a.replayed++; p.created < 0 {
			a.detached++
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
	l, class := a.around.Values[p.at], &a.Classes[p.name]
	if p.created >= 0 {
		if c := a.around.Values[p.created]; c.Layer != NoID || c.Phase != "" || c.Expert != NoID || c.Operator != 0 {
			c.Step = l.Step
			l = c
		}
	}
	if l.Phase == ranges.PhaseIgnored {
		return -1
	}
	if l.Phase = ranges.PhaseBy(l, cmp.Or(p.operator, l.Operator), class.Phase); class.Given {
		l.Phase = class.Phase
	}
	l.Module, l.Operator = false, 0
	return a.Places.Number(l)
}
