package nsys

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/moebalance/moebalance/compare/nsys/capture"
)

// Libraries annotate their own calls in domains of their own. Their ranges are
// never steps, layers or phases of the model.
var libraryDomains = []string{"nccl", "cccl", "cub", "thrust", "cublas", "cublaslt", "cudnn", "cufft", "cusparse", "cusolver", "nvshmem", "ucx", "libcudacxx", "libkvikio"}

// attribution places every kernel of a recording.
type attribution struct {
	rec     *capture.Recording
	labels  []label // by name
	places  []place
	index   map[place]int32
	calls   []int32 // place of each call
	births  []int32 // place of each graph node at its creation
	roots   []int32 // of each graph node, see findRoots
	replays map[[2]int32]int32
	classes []class  // by name; computed for kernels' names only
	recent  []phased // by name
	// what is worth a warning
	renumbered   bool
	orphans      int64 // replayed kernels whose node was created outside the capture
	lastWork     int64 // when the last kernel or graph ended
	marksSeen    int   // ranges whose name says something
	marksAfter   int   // of these, the ones that begin after lastWork
	stepsSeen    int   // steps by thread and number
	stepsWithout int   // of these, the ones in which nothing ran
	silent       int   // processes with such ranges in which nothing ran at all
	ignored      int64 // kernels that the program asks to leave out
	ignoredNS    int64
}

// attribute finds the place of every call and of every graph node's birth.
func attribute(rec *capture.Recording, patterns *Patterns) *attribution {
	a := &attribution{rec: rec, labels: make([]label, len(rec.RangeNames))}
	lines := make([]timeline, len(rec.Threads))
	a.sortNodes()
	var wait sync.WaitGroup
	wait.Go(func() { a.addMoments(lines) })
	a.addMarks(lines, patterns)
	wait.Wait()
	at := make([]int32, len(rec.Launches)+len(rec.GraphNodes))
	found, renumbered := make([][]place, len(lines)), make([]bool, len(lines))
	for i := range lines {
		wait.Go(func() {
			lines[i].sortMarks()
			renumbered[i] = lines[i].numberSteps()
			places := newIndex[place](0)
			lines[i].locate(func(target int32, p place) { at[target] = places.number(p) })
			found[i] = places.values
		})
	}
	wait.Wait()
	most := len(slices.MaxFunc(append(found, nil), func(x, y []place) int { return cmp.Compare(len(x), len(y)) }))
	a.index = make(map[place]int32, 2*most) // threads of several ranks share most places; kernels' phases make more
	a.places = make([]place, 0, 2*most)
	a.intern(nowhere)
	for i := range lines { // from each thread's own numbers of places to common ones
		a.renumbered = a.renumbered || renumbered[i]
		number := make([]int32, len(found[i]))
		for n, p := range found[i] {
			number[n] = a.intern(p)
		}
		wait.Go(func() {
			for _, m := range lines[i].moments {
				at[m.target] = number[at[m.target]]
			}
		})
	}
	wait.Wait()
	a.calls, a.births = at[:len(rec.Launches)], at[len(rec.Launches):]
	a.lookForEnd(lines)
	return a
}

// lookForEnd compares the ranges with what ran: a capture whose kernels stop
// while its ranges go on has lost the rest.
func (a *attribution) lookForEnd(lines []timeline) {
	a.lastWork = -capture.TimeLimit
	for i := range a.rec.Kernels {
		a.lastWork = max(a.lastWork, a.rec.Kernels[i].End)
	}
	for _, g := range a.rec.Graphs {
		a.lastWork = max(a.lastWork, g.End)
	}
	type step struct {
		process int32
		number  int32
	}
	ran := map[step]bool{}
	var last step // neighbours are mostly of one
	for i := range a.rec.Launches {
		n := a.places[a.calls[i]].Step
		if n == None {
			continue
		}
		if s := (step{a.rec.Threads[a.rec.Launches[i].Thread].Process, n}); s != last || len(ran) == 0 {
			ran[s], last = true, s
		}
	}
	silent := map[int32]bool{}
	for i, line := range lines {
		if len(line.marks) > 0 && !a.rec.Issues.NoPIDs {
			silent[a.rec.Threads[i].Process] = true
		}
		for _, m := range line.marks {
			if m.phase == phaseIgnored {
				continue
			}
			a.marksSeen++
			if m.start > a.lastWork {
				a.marksAfter++
			}
			if m.step == None {
				continue
			}
			a.stepsSeen++
			if !ran[step{a.rec.Threads[i].Process, m.step}] {
				a.stepsWithout++
			}
		}
	}
	for _, u := range a.rec.Devices {
		delete(silent, u.Process)
	}
	a.silent = len(silent)
}

// addMarks labels the ranges and gives those whose name says something to their
// threads.
func (a *attribution) addMarks(lines []timeline, patterns *Patterns) {
	rec := a.rec
	named := make([]bool, len(rec.RangeNames))
	user := make([]bool, len(rec.Domains))
	for i, d := range rec.Domains {
		user[i] = !slices.Contains(libraryDomains, strings.ToLower(d))
	}
	count := make([]int, len(lines))
	for _, r := range rec.Ranges {
		if user[r.Domain] && !named[r.Name] {
			a.labels[r.Name], named[r.Name] = patterns.label(rec.RangeNames[r.Name]), true
		}
		if user[r.Domain] && !a.labels[r.Name].empty() {
			count[r.Thread]++
		}
	}
	for i, n := range count {
		lines[i].marks = make([]mark, 0, n)
	}
	for _, r := range rec.Ranges {
		if l := &a.labels[r.Name]; user[r.Domain] && !l.empty() {
			t := &lines[r.Thread]
			t.marks = append(t.marks, mark{r.Start, r.End, *l})
		}
	}
}

// addMoments asks for the place of every call and every graph node's birth, in
// one pass to count and one to fill.
func (a *attribution) addMoments(lines []timeline) {
	count := make([]int, len(lines))
	for _, c := range a.rec.Launches {
		count[c.Thread]++
	}
	for _, n := range a.rec.GraphNodes {
		count[n.Thread]++
	}
	for i, n := range count {
		lines[i].moments = make([]moment, 0, n)
	}
	for i, c := range a.rec.Launches {
		t := &lines[c.Thread]
		t.moments = append(t.moments, moment{c.Start, int32(i)})
	}
	for i, n := range a.rec.GraphNodes {
		t := &lines[n.Thread]
		t.moments = append(t.moments, moment{n.Created, int32(len(a.rec.Launches) + i)})
	}
}

func (a *attribution) intern(p place) int32 {
	i, ok := a.index[p]
	if !ok {
		i = int32(len(a.places))
		a.index[p] = i
		a.places = append(a.places, p)
	}
	return i
}

func (a *attribution) sortNodes() {
	slices.SortStableFunc(a.rec.GraphNodes, func(x, y capture.GraphNode) int {
		return cmp.Or(cmp.Compare(x.Process, y.Process), cmp.Compare(x.ID, y.ID), cmp.Compare(x.Created, y.Created))
	})
}

// birth is the node's latest row that is not after the given time, its first
// row if all are, and −1 without one: ids come again after a graph is destroyed.
func (a *attribution) birth(process int32, id, before int64) int32 {
	nodes := a.rec.GraphNodes
	after, _ := slices.BinarySearchFunc(nodes, capture.GraphNode{Process: process, ID: id, Created: before}, func(n, t capture.GraphNode) int {
		return cmp.Or(cmp.Compare(n.Process, t.Process), cmp.Compare(n.ID, t.ID), cmp.Or(cmp.Compare(n.Created, t.Created), -1))
	})
	same := func(i int) bool { return i >= 0 && i < len(nodes) && nodes[i].Process == process && nodes[i].ID == id }
	switch {
	case same(after - 1):
		return int32(after - 1)
	case same(after):
		return int32(after)
	}
	return -1
}

// findRoots follows every node from clone to clone to the node that was created
// while a stream was captured. It is −1 where the chain leaves the capture or
// bites its own tail.
func (a *attribution) findRoots() []int32 {
	const unknown, walking = -2, -3
	roots := make([]int32, len(a.rec.GraphNodes))
	for i := range roots {
		roots[i] = unknown
	}
	var path []int32
	for i := range roots {
		at, root := int32(i), int32(-1)
		path = path[:0]
		for at >= 0 && roots[at] == unknown {
			roots[at] = walking
			path = append(path, at)
			n := a.rec.GraphNodes[at]
			if n.Origin == 0 || n.Origin == n.ID {
				root = at
				break
			}
			at = a.birth(n.Process, n.Origin, n.Created)
			if at >= 0 && roots[at] >= -1 {
				root = roots[at]
			}
		}
		for _, p := range path {
			roots[p] = root
		}
	}
	return roots
}

// ledgers splits what ran by the process and device it ran on, in their order,
// and gives each kernel its final place.
func (a *attribution) ledgers() []*ledger {
	a.classes = make([]class, len(a.rec.KernelNames))
	a.recent = make([]phased, len(a.rec.KernelNames))
	a.roots = a.findRoots()
	a.replays = map[[2]int32]int32{}
	ledgers := make([]*ledger, len(a.rec.Devices))
	count := make([]int, len(a.rec.Devices))
	for i := range a.rec.Kernels {
		count[a.rec.Kernels[i].Device]++
	}
	for i, u := range a.rec.Devices {
		ledgers[i] = &ledger{unit: u, events: make([]event, 0, count[i])}
	}
	for _, s := range a.rec.Streams {
		ledgers[s.Device].rank.Streams++
	}
	for i := range a.rec.Kernels {
		k := &a.rec.Kernels[i]
		l, at := ledgers[k.Device], a.placeOf(k)
		if a.places[at].Phase == phaseIgnored {
			a.ignored++
			a.ignoredNS += k.End - k.Start
			continue
		}
		if a.rec.Launched(k) {
			l.launchedNS += k.End - k.Start
		}
		if k.GraphNode > 0 {
			l.replayed++
		}
		l.events = append(l.events, event{start: k.Start, duration: k.End - k.Start, place: at, name: k.Name})
	}
	for _, g := range a.rec.Graphs {
		step := int32(None)
		if g.Launch >= 0 {
			step = a.places[a.calls[g.Launch]].Step
		}
		l := ledgers[g.Device]
		l.graphs = append(l.graphs, graphEvent{Graph: g.Graph, Step: step, Start: g.Start, NS: g.End - g.Start})
	}
	// a unit can be left empty: what it ran was given to another, was ignored, or was no kernel
	ledgers = slices.DeleteFunc(ledgers, func(l *ledger) bool { return len(l.events) == 0 && len(l.graphs) == 0 })
	slices.SortFunc(ledgers, func(x, y *ledger) int {
		return cmp.Or(cmp.Compare(a.rec.Processes[x.unit.Process], a.rec.Processes[y.unit.Process]), cmp.Compare(x.unit.Ordinal, y.unit.Ordinal))
	})
	return ledgers
}

// placeOf is a kernel's final place: the range at capture before the range at
// replay, a range's word for the phase before the kernel's name.
func (a *attribution) placeOf(k *capture.Kernel) int32 {
	at := int32(0)
	if k.Launch >= 0 {
		at = a.calls[k.Launch]
	}
	if k.GraphNode > 0 {
		root := int32(-1)
		if b := a.birth(a.rec.Devices[k.Device].Process, a.rec.GraphNodeIDs[k.GraphNode-1], k.Start); b >= 0 {
			root = a.roots[b]
		}
		if root >= 0 {
			at = a.replay(at, a.births[root])
		} else {
			a.orphans++
		}
	}
	last := &a.recent[k.Name]
	if !last.known || last.from != at {
		*last = phased{true, at, a.phased(at, k.Name)}
	}
	return last.to
}

// phased is the final place of kernels of one name at one place.
type phased struct {
	known    bool
	from, to int32
}

// replay is the place of a kernel replayed at one place whose node was created
// at another: the step is the replay's, the rest the creation's where it says.
func (a *attribution) replay(replayed, created int32) int32 {
	key := [2]int32{replayed, created}
	if i, ok := a.replays[key]; ok {
		return i
	}
	p, c := a.places[replayed], a.places[created]
	if c.Layer != None || c.Phase != "" || c.Expert != None {
		p.Layer, p.Phase, p.Expert, p.module = c.Layer, c.Phase, c.Expert, c.module
	}
	i := a.intern(p)
	a.replays[key] = i
	return i
}

// phased is the place with the phase of the kernel's name where no range gave
// one, or only a module did and the name knows better.
func (a *attribution) phased(at, name int32) int32 {
	c := &a.classes[name]
	if c.phase == "" {
		*c = classify(a.rec.KernelNames[name])
	}
	p := a.places[at]
	known := c.phase != PhaseUnknown && c.phase != PhaseOther
	if p.Phase != "" && !p.module {
		return at
	}
	if p.Phase == "" || known {
		p.Phase = c.phase
	}
	p.module = false
	return a.intern(p)
}
