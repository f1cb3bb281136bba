package wait

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// Wait is the waiting at the collective that ends the expert block of a layer, per step:
// the last arrival − the mean arrival of the ranks, in nanoseconds, summed over such
// collectives where a layer has several in a step, then the mean over the steps that
// count. A collective ends an expert block if expert kernels ran since the last
// one of all ranks. Steps in which ranks disagree on its layer are left out.
type Wait struct {
	Layer      router.OptInt `json:"layer"`
	Collective string        `json:"collective"` // kernel
	Phase      kernel.Phase  `json:"phase"`      // of the collective
	Steps      int           `json:"steps"`
	// LastRank is the rank that arrives last in most steps, the lowest one on a tie,
	// LastSteps in how many, and LastShare in which share of Steps.
	LastRank  int           `json:"last_rank"`
	LastSteps int           `json:"last_steps"`
	LastShare router.Number `json:"last_share"`
	// MostExpertRank is the rank with most expert time in most steps, the lowest one on
	// a tie. Agrees says that it is LastRank, AgreeSteps in how many steps the last rank
	// was the one with most expert time.
	MostExpertRank int  `json:"most_expert_rank"`
	Agrees         bool `json:"agrees"`
	AgreeSteps     int  `json:"agree_steps"`
	// WaitNS is the whole, the sum of Parts.
	WaitNS    router.Number `json:"mean_wait_ns"`
	Parts     Parts         `json:"parts"`
	Intervals Intervals     `json:"intervals"`
	// The parts of HostNS that coincide with garbage collection of Python, and with
	// waiting for its lock (GIL). Undefined where the capture records no such event.
	GCNS  router.Number `json:"host_gc_ns"`
	GILNS router.Number `json:"host_gil_ns"`
}

// MostlyHosts reports whether more than half of the waiting is for hosts that launch late:
// steps are then longer than their compute, and cutting compute shortens them only partly.
func MostlyHosts(waits []Wait) bool {
	var host, all router.Number
	for _, w := range waits {
		host, all = host+w.Parts.HostNS, all+w.WaitNS
	}
	return 2*host > all // false where launches are not recorded
}

// Parts are what the last rank spent more than the mean rank since the last
// collective of all ranks, in nanoseconds per step. Each can be negative: the last rank had
// less of it, and was late all the same.
type Parts struct {
	ExpertNS  router.Number `json:"expert_ns"`        // compute of the phase experts
	OtherNS   router.Number `json:"other_compute_ns"` // compute of other phases
	KernelsNS router.Number `json:"kernels_ns"`       // kernels of which ranks ran different variants, see Variant
	// HostNS is time without a kernel until the call that launches the next one
	// returned; undefined where launches are not recorded.
	HostNS        router.Number `json:"host_ns"`
	UnexplainedNS router.Number `json:"unexplained_ns"`
}

// Intervals are Student's t intervals of the whole and its parts over steps, at 95 %;
// undefined for fewer than 2 steps. Steps of one launch are not independent launches.
type Intervals struct {
	Wait        Interval `json:"mean_wait_ns"`
	Expert      Interval `json:"expert_ns"`
	Other       Interval `json:"other_compute_ns"`
	Kernels     Interval `json:"kernels_ns"`
	Host        Interval `json:"host_ns"`
	Unexplained Interval `json:"unexplained_ns"`
}

// Interval is bounds in nanoseconds.
type Interval struct {
	Low  router.Number `json:"low_ns"`
	High router.Number `json:"high_ns"`
}

// confidence is that of Intervals.
const confidence = 0.95

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
	ofExpertVariants = iota // see Variant
	ofVariants
	ofExperts
	ofOther
	ofCollectives
	classes
)

// sharedCollective is a collective of all ranks.
type sharedCollective struct {
	key
	of       []instance        // by rank, in its own clock
	previous *sharedCollective // the last one that every rank left before it arrived here, nil without
	ends     bool              // an expert block, see Wait
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
		class := a.class(&k)
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

func (a *analysis) class(k *Kernel) int {
	switch {
	case k.Collective:
		return ofCollectives
	case k.Phase == kernel.PhaseExperts && a.isVariant(k):
		return ofExpertVariants
	case k.Phase == kernel.PhaseExperts:
		return ofExperts
	case a.isVariant(k):
		return ofVariants
	}
	return ofOther
}

// isVariant reports whether ranks ran different variants of a kernel, chosen by rank.
func (a *analysis) isVariant(k *Kernel) bool {
	return len(a.different) > 0 && a.different[useKey{place{k.Layer, k.Phase}, k.Name}]
}

// The parts of the waiting, and then what parts of the host's lateness coincide with.
const (
	partExpert = iota
	partOther
	partKernels
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

// stepWait is the waiting of one layer in one step, or that for one rank.
type stepWait struct {
	parts  values
	expert []int64 // time by rank, of a layer
	last   int     // the rank, as its position, that was waited for longest
	most   float64 // for how long
	at     *sharedCollective
}

// add adds the waiting for a rank at a collective.
func (w *stepWait) add(last int, parts values, m *sharedCollective) {
	w.parts.add(parts)
	if w.at == nil || parts[partWhole] > w.most {
		w.last, w.most, w.at = last, parts[partWhole], m
	}
}

// waits fills Waits.
func (a *analysis) waits() {
	shared := a.sharedCollectives()
	a.hosts = !slices.ContainsFunc(a.Ranks, func(r Rank) bool { return r.Late == nil })
	spans := make([][]span, len(a.Ranks))
	var group sync.WaitGroup
	for i := range a.Ranks {
		group.Go(func() { spans[i] = a.spans(i, shared) })
	}
	group.Wait()
	byLayer, byStep := map[int32]map[int32]*stepWait{}, map[int32]map[int]*stepWait{}
	var counted *sharedCollective // the last one in byStep
	for number, m := range shared {
		last, parts := a.partsOf(m, number, spans)
		if a.Steps[m.Step] && (counted == nil || counted.leftBefore(m)) {
			counted = m
			at(byStep, m.Step, last).add(last, parts, m)
		}
		step, layer, ok := blockOf(spans, number)
		if !m.ends || !ok || !a.Steps[step] {
			continue
		}
		w := at(byLayer, layer, step)
		w.add(last, parts, m)
		if w.expert == nil {
			w.expert = make([]int64, len(a.Ranks))
		}
		for i := range a.Ranks {
			w.expert[i] += spans[i][number].expert
		}
	}
	for layer, steps := range byLayer {
		a.Waits = append(a.Waits, a.row(layer, steps))
	}
	slices.SortFunc(a.Waits,
		func(x, y Wait) int { return cmp.Or(cmp.Compare(y.WaitNS, x.WaitNS), cmp.Compare(x.Layer, y.Layer)) })
	a.lateness(byStep)
}

// at is the stepWait of two keys.
func at[K, L comparable](of map[K]map[L]*stepWait, k K, l L) *stepWait {
	if of[k] == nil {
		of[k] = map[L]*stepWait{}
	}
	if of[k][l] == nil {
		of[k][l] = &stepWait{}
	}
	return of[k][l]
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
		experts, others := own.part(ofExpertVariants)-s.part(ofExpertVariants), own.part(ofVariants)-s.part(ofVariants)
		if a.apart[[3]int32{own.layer, int32(last), int32(i)}] {
			more[partKernels] += experts + others
		} else {
			more[partExpert] += experts
			more[partOther] += others
		}
	}
	more[partUnexplained] = more[partWhole] - more[partExpert] - more[partOther] - more[partKernels] - more[partHost]
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

// row is the mean over the steps of a layer.
func (a *analysis) row(layer int32, steps map[int32]*stepWait) Wait {
	w := Wait{Layer: router.OptInt(layer), Steps: len(steps)}
	var values [partWhole + 1][]float64 // by step
	last, most := make([]int, len(a.Ranks)), make([]int, len(a.Ranks))
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		s := steps[step]
		w.Collective, w.Phase = s.at.name, s.at.Phase
		for p, ns := range s.parts {
			values[p] = append(values[p], ns)
		}
		busiest := slices.Index(s.expert, slices.Max(s.expert))
		last[s.last]++
		most[busiest]++
		if s.last == busiest {
			w.AgreeSteps++
		}
	}
	w.LastSteps = slices.Max(last)
	w.LastRank = a.Ranks[slices.Index(last, w.LastSteps)].Number
	w.MostExpertRank = a.Ranks[slices.Index(most, slices.Max(most))].Number
	w.Agrees = w.LastRank == w.MostExpertRank
	w.LastShare = router.Number(w.LastSteps) / router.Number(w.Steps)
	mean := func(p int) (router.Number, Interval) {
		t := stats.PairedT(values[p], confidence)
		return router.Number(t.Estimate), Interval{router.Number(t.Low), router.Number(t.High)}
	}
	i := &w.Intervals
	w.WaitNS, i.Wait = mean(partWhole)
	w.Parts.ExpertNS, i.Expert = mean(partExpert)
	w.Parts.OtherNS, i.Other = mean(partOther)
	w.Parts.KernelsNS, i.Kernels = mean(partKernels)
	w.Parts.UnexplainedNS, i.Unexplained = mean(partUnexplained)
	w.Parts.HostNS, i.Host = router.Undefined(), Interval{router.Undefined(), router.Undefined()}
	w.GCNS, w.GILNS = router.Undefined(), router.Undefined()
	if a.hosts {
		w.Parts.HostNS, i.Host = mean(partHost)
		if a.GC {
			w.GCNS, _ = mean(partGC)
		}
		if a.GIL {
			w.GILNS, _ = mean(partGIL)
		}
	}
	return w
}
