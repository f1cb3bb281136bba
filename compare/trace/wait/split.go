package wait

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/router"
)

// Parts are what the last rank spent more than the mean rank since the last
// collective of all ranks, in nanoseconds per step. Each can be negative: the last rank had
// less of it, and was late all the same.
type Parts struct {
	ExpertNS router.Number `json:"expert_ns"`        // compute of the phase experts
	OtherNS  router.Number `json:"other_compute_ns"` // compute of other phases
	// HostNS is time without a kernel until the call that launches the next one
	// returned; undefined where launches are not recorded.
	HostNS        router.Number `json:"host_ns"`
	UnexplainedNS router.Number `json:"unexplained_ns"`
}

// The causes of waiting.
const (
	ExpertLoad   = "expert load"
	OtherCompute = "other compute"
	LateHosts    = "late launches"
)

// Late is the host lateness of a rank since the collective before: time in which no
// kernel ran and the call that launches the next one had not returned, up to the start
// of a collective, all in nanoseconds. GC and GIL are the parts of NS that coincide with
// Python's garbage collection and with waiting for its lock, Call the part in the launching
// calls themselves.
type Late struct {
	At   int64 `json:"t"` // start of the collective
	NS   int64 `json:"n"`
	GC   int64 `json:"c,omitempty"`
	GIL  int64 `json:"l,omitempty"`
	Call int64 `json:"a,omitempty"`
}

// The classes of a kernel's time. Where kernels overlap, the first class counts.
const (
	ofExperts = iota
	ofOther
	ofCollectives
	classes
)

// sharedCollective is a collective of all ranks.
type sharedCollective struct {
	key
	of       []instance        // by rank, in its own clock
	previous *sharedCollective // the last one that every rank left before it arrived here, nil without
	ends     bool              // an expert block: experts ran since the last collective
}

// span is what a rank did from leaving one of them to arriving at the next.
type span struct {
	from, to    int64
	busy        [classes]kernel.Busy // of this class and the ones before
	expert      int64                // time of kernels that are expert time
	step, layer int32                // of these, the last one
}

// part is the time of one class.
func (s *span) part(class int) int64 {
	if class == 0 {
		return s.busy[0].NS
	}
	return s.busy[class].NS - s.busy[class-1].NS
}

// sharedCollectives lists the collectives of all ranks that end an expert block or are in a step
// that counts, in the order of time.
func (a *analysis) sharedCollectives() []*sharedCollective {
	var list []*sharedCollective
	for _, v := range a.order {
		if !a.matched[v] {
			continue
		}
		for k := range a.Ranks[0].collectives[v] {
			m := &sharedCollective{key: v}
			for i := range a.Ranks {
				m.of = append(m.of, a.Ranks[i].collectives[v][k])
			}
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(x, y *sharedCollective) int { return cmp.Compare(x.of[0].start, y.of[0].start) })
	for i, m := range list {
		for b := i - 1; b >= max(0, i-mostOverlapping) && m.previous == nil; b-- {
			if list[b].leftBefore(m) {
				m.previous = list[b]
			}
		}
	}
	for i := range a.Ranks {
		a.findEnds(i, list)
	}
	a.headless = map[int32]bool{}
	for _, m := range list {
		a.headless[m.Step] = a.headless[m.Step] || m.previous == nil
	}
	return slices.DeleteFunc(list, func(m *sharedCollective) bool {
		return m.previous == nil || !m.ends && !a.Steps[m.Step]
	})
}

// mostOverlapping bounds how many collectives of all ranks can be under way at once.
const mostOverlapping = 64

// findEnds marks the first collective after each expert kernel of a rank.
func (a *analysis) findEnds(rank int, shared []*sharedCollective) {
	order := slices.Clone(shared)
	slices.SortStableFunc(order, func(x, y *sharedCollective) int {
		return cmp.Compare(x.of[rank].start, y.of[rank].start)
	})
	at := 0
	for k := range a.Ranks[rank].Kernels {
		if !k.Expert {
			continue
		}
		for at < len(order) && order[at].of[rank].start <= k.Start {
			at++
		}
		if at < len(order) {
			order[at].ends = true
		}
	}
}

// leftBefore reports whether every rank left a collective before it arrived at another.
func (m *sharedCollective) leftBefore(next *sharedCollective) bool {
	for i := range m.of {
		if m.of[i].end > next.of[i].start {
			return false
		}
	}
	return true
}

// spans are those of a rank that lead to each collective.
func (a *analysis) spans(rank int, shared []*sharedCollective) []span {
	list := make([]span, len(shared))
	for i, m := range shared {
		s := &list[i]
		s.from, s.to, s.layer = m.previous.of[rank].end, m.of[rank].start, router.NoID
	}
	order := make([]*span, len(list)) // in the rank's own order of time
	for i := range list {
		order[i] = &list[i]
	}
	slices.SortStableFunc(order, func(x, y *span) int { return cmp.Compare(x.to, y.to) })
	at := 0
	for k := range a.Ranks[rank].Kernels {
		for at < len(order) && order[at].to <= k.Start {
			at++
		}
		class := k.class()
		for _, s := range order[at:] {
			if s.from >= k.End {
				break
			}
			from, to := max(k.Start, s.from), min(k.End, s.to)
			for c := class; c < classes; c++ {
				s.busy[c].Add(from, to-from)
			}
			if k.Expert && k.Start >= s.from {
				s.expert += k.End - k.Start
				s.step, s.layer = k.Step, k.Layer
			}
		}
	}
	return list
}

func (k *Kernel) class() int {
	switch {
	case k.Collective:
		return ofCollectives
	case k.Phase == kernel.PhaseExperts:
		return ofExperts
	}
	return ofOther
}

// The parts of the waiting, and then what parts of the host's lateness coincide with.
const (
	partExpert = iota
	partOther
	partHost
	partGC
	partGIL
	partCall
	measured        // the number of parts above
	partUnexplained = measured
	partWhole       = measured + 1
)

// values are the whole and its parts, in nanoseconds.
type values [partWhole + 1]float64

func (v *values) add(o values) {
	for p := range v {
		v[p] += o[p]
	}
}

// stepWait is the waiting for one rank in one step.
type stepWait struct {
	parts values
	most  float64 // the longest wait at one collective
	at    *sharedCollective
}

// add adds the waiting at a collective.
func (w *stepWait) add(parts values, m *sharedCollective) {
	w.parts.add(parts)
	if w.at == nil || parts[partWhole] > w.most {
		w.most, w.at = parts[partWhole], m
	}
}

// layerWait is the waiting at the collectives that end the expert blocks of a layer.
type layerWait struct {
	parts values
	steps map[int32]bool
}

// waits fills Waiting.
func (a *analysis) waits() {
	shared := a.sharedCollectives()
	a.hosts = !slices.ContainsFunc(a.Ranks, func(r Rank) bool { return r.Late == nil })
	spans := make([][]span, len(a.Ranks))
	var group sync.WaitGroup
	for i := range a.Ranks {
		group.Go(func() { spans[i] = a.spans(i, shared) })
	}
	group.Wait()
	byLayer, byStep := map[int32]*layerWait{}, map[int32]map[int]*stepWait{}
	var counted *sharedCollective // the last one in byStep
	for number, m := range shared {
		last, parts := a.partsOf(m, number, spans)
		if a.Steps[m.Step] && (counted == nil || counted.leftBefore(m)) {
			counted = m
			if byStep[m.Step] == nil {
				byStep[m.Step] = map[int]*stepWait{}
			}
			if byStep[m.Step][last] == nil {
				byStep[m.Step][last] = &stepWait{}
			}
			byStep[m.Step][last].add(parts, m)
		}
		step, layer, ok := blockOf(spans, number)
		if !m.ends || !ok || !a.Steps[step] {
			continue
		}
		if byLayer[layer] == nil {
			byLayer[layer] = &layerWait{steps: map[int32]bool{}}
		}
		byLayer[layer].parts.add(parts)
		byLayer[layer].steps[step] = true
	}
	a.blocks(byLayer)
	a.lateness(byStep)
}

// blocks adds the layers' waiting per step.
func (a *analysis) blocks(byLayer map[int32]*layerWait) {
	if len(byLayer) == 0 {
		return
	}
	w := &a.Waiting.Blocks
	*w = Blocks{Layers: len(byLayer)}
	for _, layer := range slices.Sorted(maps.Keys(byLayer)) {
		l := byLayer[layer]
		n := float64(len(l.steps))
		w.WaitNS += router.Number(l.parts[partWhole] / n)
		w.HostNS += router.Number(l.parts[partHost] / n)
	}
	if !a.hosts {
		w.HostNS = router.Undefined()
	}
}

// blockOf is the step and layer whose expert block a collective ends; not ok for one that
// ends none, or where ranks disagree.
func blockOf(spans [][]span, m int) (step, layer int32, ok bool) {
	layer = router.NoID
	for i := range spans {
		s := &spans[i][m]
		switch {
		case s.layer == router.NoID:
		case layer == router.NoID:
			step, layer = s.step, s.layer
		case s.step != step || s.layer != layer:
			return 0, 0, false
		}
	}
	return step, layer, layer != router.NoID
}

// asLate is the share of the mean wait by which a rank may arrive before the last one and be
// as late: of ranks that waited for each other at a collective of their own, the one that did
// not wait is the late one.
const asLate = 0.1

// partsOf is the waiting at one collective, for the rank that arrives last.
func (a *analysis) partsOf(m *sharedCollective, number int, spans [][]span) (last int, parts values) {
	n := len(a.Ranks)
	arrivals, late := make([]int64, n), make([]Late, n)
	for i := range a.Ranks {
		arrivals[i] = a.Ranks[i].common(m.of[i].start) - m.of[0].start // since the first rank's
		if arrivals[i] > arrivals[last] {
			last = i
		}
		if a.hosts {
			late[i] = a.Ranks[i].lateBetween(m.previous.of[i].start, m.of[i].start)
		}
	}
	var more [partWhole + 1]int64 // of the last rank than of the others, added up
	for i := range a.Ranks {
		more[partWhole] += arrivals[last] - arrivals[i]
	}
	for i, latest := 0, arrivals[last]; i < n; i++ {
		if float64(latest-arrivals[i]) <= asLate*float64(more[partWhole])/float64(n) &&
			spans[i][number].part(ofCollectives) < spans[last][number].part(ofCollectives) {
			last = i
		}
	}
	own := &spans[last][number]
	for i := range a.Ranks {
		s := &spans[i][number]
		more[partExpert] += own.part(ofExperts) - s.part(ofExperts)
		more[partOther] += own.part(ofOther) - s.part(ofOther)
		more[partHost] += late[last].NS - late[i].NS
		more[partGC] += late[last].GC - late[i].GC
		more[partGIL] += late[last].GIL - late[i].GIL
		more[partCall] += late[last].Call - late[i].Call
	}
	more[partUnexplained] = more[partWhole] - more[partExpert] - more[partOther] - more[partHost]
	for p := range more {
		parts[p] = float64(more[p]) / float64(n)
	}
	return last, parts
}

// lateBetween sums the lateness after one collective began and until another did.
func (r *Rank) lateBetween(after, until int64) (sum Late) {
	at, _ := slices.BinarySearchFunc(r.Late, after+1, func(l Late, t int64) int { return cmp.Compare(l.At, t) })
	for ; at < len(r.Late) && r.Late[at].At <= until; at++ {
		sum.NS += r.Late[at].NS
		sum.GC += r.Late[at].GC
		sum.GIL += r.Late[at].GIL
		sum.Call += r.Late[at].Call
	}
	return sum
}
