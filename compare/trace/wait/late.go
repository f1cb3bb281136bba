package wait

import (
	"cmp"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/replay"
	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// Waiting is all waiting at the collectives of the steps that count: last arrival − mean arrival,
// added over a step's collectives, mean over steps. Undefined where steps cannot be replayed.
type Waiting struct {
	Steps  int           `json:"steps"`
	WaitNS router.Number `json:"mean_wait_ns"`
	Parts  Parts         `json:"parts"`
	Cause
	Ranks []Arrival  `json:"ranks"` // that are last at any, the longest wait first
	Late  []LateStep `json:"late"`  // the longest wait first
}

// Parts are what the last rank spent more than the mean rank since the last collective, in
// nanoseconds per step. Each can be negative: the last rank had less of it, and was late all the same.
type Parts struct {
	ExpertNS      router.Number `json:"expert_ns"`        // compute of the phase experts
	OtherNS       router.Number `json:"other_compute_ns"` // compute of other phases
	HostNS        router.Number `json:"host_ns"`          // waiting for launches
	UnexplainedNS router.Number `json:"unexplained_ns"`
}

// The causes of waiting.
const (
	ExpertTime   = "expert time"
	OtherCompute = "other compute"
	LateHosts    = "late launches"
)

// Cause is the part that explains more than half of a wait, empty where none does; for late
// launches also what the host did in more than half of that time.
type Cause struct {
	Name string        `json:"cause"`
	NS   router.Number `json:"cause_ns"`
	Did  Deed          `json:"host_did"`
}

// Deed is what a host does instead of launching.
type Deed string

// The deeds; empty for anything else.
const (
	CollectsGarbage Deed = "Python garbage collection"
	WaitsForLock    Deed = "waiting for Python's lock"
	Launches        Deed = "launch calls"
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

// Between sums lateness, which is in the order of time.
func Between(list []Late, from, to int64) (sum Late) {
	at, _ := slices.BinarySearchFunc(list, from, func(l Late, t int64) int { return cmp.Compare(l.At, t) })
	for ; at < len(list) && list[at].At <= to; at++ {
		sum.add(list[at])
	}
	return sum
}

func (l *Late) add(o Late) {
	l.NS, l.GC, l.GIL, l.Call = l.NS+o.NS, l.GC+o.GC, l.GIL+o.GIL, l.Call+o.Call
}

// did is what the host did in more than half of the time.
func (l Late) did() Deed {
	switch {
	case 2*l.GC > l.NS:
		return CollectsGarbage
	case 2*l.GIL > l.NS:
		return WaitsForLock
	case 2*l.Call > l.NS:
		return Launches
	}
	return ""
}

// Arrival is how long the ranks wait for one of them, per step, mean over all steps.
type Arrival struct {
	Rank      int           `json:"rank"`
	LastSteps int           `json:"last_steps"` // in which they wait for it longest
	WaitNS    router.Number `json:"mean_wait_ns"`
	Cause
}

// LateStep is a step in which the ranks wait far longer than in most for one of them: it
// arrives late, where others are even.
type LateStep struct {
	Step    router.OptInt `json:"step"`
	Layer   router.OptInt `json:"layer"` // of the experts before the longest wait for it
	Rank    int           `json:"rank"`
	WaitNS  router.Number `json:"mean_wait_ns"`  // for it
	UsualNS router.Number `json:"usual_wait_ns"` // median over steps, for all ranks
	Cause
}

// Explained is how much of the wait the cause explains.
func (a Arrival) Explained() router.Number { return min(a.WaitNS, a.NS) }

// Explained is how much of the wait the cause explains.
func (l LateStep) Explained() router.Number { return min(l.WaitNS, l.NS) }

// Unknown is the waiting of which nothing is known.
func Unknown() Waiting {
	none := router.Undefined()
	return Waiting{WaitNS: none, Parts: Parts{none, none, none, none}, Cause: Cause{NS: none}, Ranks: []Arrival{},
		Late: []LateStep{}}
}

// Step is the waiting in one step, by the rank that is waited for, and the lateness of hosts.
type Step struct {
	Number int
	For    map[int]*replay.Wait
	Late   map[int]Late
}

// longest is the rank that is waited for longest.
func (s *Step) longest() int {
	return slices.MinFunc(slices.Sorted(maps.Keys(s.For)), func(x, y int) int {
		return cmp.Compare(s.For[y].NS, s.For[x].NS)
	})
}

// Judge says for whom and for what ranks wait in steps that take stepNS.
func Judge(steps []Step, stepNS float64) Waiting {
	w := Unknown()
	steps = slices.DeleteFunc(slices.Clone(steps), func(s Step) bool { return len(s.For) == 0 })
	if w.Steps = len(steps); w.Steps == 0 {
		return w
	}
	var all replay.Wait
	var allLate Late
	byRank, late, last := map[int]*replay.Wait{}, map[int]Late{}, map[int]int{}
	for _, s := range steps {
		for rank, wait := range s.For {
			if byRank[rank] == nil {
				byRank[rank] = &replay.Wait{}
			}
			byRank[rank].Add(wait.Per(len(steps)))
			sum := late[rank]
			sum.add(s.Late[rank])
			late[rank] = sum
		}
		last[s.longest()]++
	}
	for _, rank := range slices.Sorted(maps.Keys(byRank)) {
		all.Add(*byRank[rank])
		allLate.add(late[rank])
		if ns := byRank[rank].NS; ns > 0 {
			w.Ranks = append(w.Ranks, Arrival{rank, last[rank], router.Number(ns), causeOf(*byRank[rank], late[rank])})
		}
	}
	slices.SortStableFunc(w.Ranks, func(x, y Arrival) int { return cmp.Compare(y.WaitNS, x.WaitNS) })
	w.WaitNS, w.Cause = router.Number(all.NS), causeOf(all, allLate)
	w.Parts = Parts{router.Number(all.Experts), router.Number(all.Other), router.Number(all.Late),
		router.Number(all.NS - all.Experts - all.Other - all.Late)}
	w.Late = append(w.Late, lateSteps(steps, stepNS)...)
	return w
}

// causeOf is the largest part, if it explains more than half of a wait.
func causeOf(w replay.Wait, late Late) Cause {
	c := Cause{NS: router.Undefined()}
	for _, part := range []struct {
		cause string
		ns    float64
	}{{ExpertTime, w.Experts}, {OtherCompute, w.Other}, {LateHosts, w.Late}} {
		if ns := router.Number(part.ns); ns > 0 && 2*part.ns > w.NS && !(ns <= c.NS) {
			c.Name, c.NS = part.cause, ns
		}
	}
	if c.Name == LateHosts {
		c.Did = late.did()
	}
	return c
}

// A step is late where its waiting exceeds the median of the steps by leastLate of a step
// and by as many median absolute deviations as normal noise exceeds once in 3.5 million.
const (
	leastLate      = 0.05
	mostDeviations = 5 * 1.4826
)

// lateSteps lists the steps with far more waiting than most.
func lateSteps(steps []Step, stepNS float64) (list []LateStep) {
	if len(steps) < 3 { // no step is most of two
		return nil
	}
	waits, apart := make([]float64, len(steps)), make([]float64, len(steps))
	for i, s := range steps {
		for _, wait := range s.For {
			waits[i] += wait.NS
		}
	}
	usual := stats.Median(waits)
	for i, ns := range waits {
		apart[i] = max(ns-usual, usual-ns)
	}
	least := max(leastLate*stepNS, mostDeviations*stats.Median(apart))
	for i, s := range steps {
		rank := s.longest()
		if wait := s.For[rank]; waits[i]-usual > least {
			list = append(list, LateStep{router.OptInt(s.Number), router.OptInt(wait.Layer), rank,
				router.Number(wait.NS), router.Number(usual), causeOf(*wait, s.Late[rank])})
		}
	}
	slices.SortStableFunc(list, func(x, y LateStep) int { return cmp.Compare(y.WaitNS, x.WaitNS) })
	return list
}
