package trace

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
//
// What the last rank took more than the mean rank since they met, as the replay of the step has it, is
// compute of experts, other compute, or waiting for launches. What slower hardware adds is in the part of
// that compute: one arm alone cannot tell it from load.
type Waiting struct {
	Steps  int           `json:"steps"`
	WaitNS router.Number `json:"mean_wait_ns"`
	Cause
	Ranks []Arrival `json:"ranks"` // that are last at any, the longest wait first
	// Late are the steps in which the ranks wait far longer than in most, for the rank that they wait for
	// longest: it arrives late, where others are even. The longest wait comes first.
	Late []Arrival `json:"late"`
}

// Arrival is how long the ranks wait for one of them: per step, mean over all steps, or in one step.
type Arrival struct {
	Rank      int           `json:"rank"`
	Step      router.OptInt `json:"step"`       // undefined over all steps
	LastSteps int           `json:"last_steps"` // in which they wait for it longest
	WaitNS    router.Number `json:"mean_wait_ns"`
	Cause
}

// Explained is how much of the wait the cause explains.
func (a Arrival) Explained() router.Number { return min(a.WaitNS, a.NS) }

// Cause is the part that explains more than half of a wait, empty where none does; for late
// launches also what the host did in more than half of that time.
type Cause struct {
	Name string        `json:"cause"`
	NS   router.Number `json:"cause_ns"`
	Did  Deed          `json:"host_did"`
}

// The causes of waiting.
const (
	ExpertTime   = "expert time"
	OtherCompute = "other compute"
	LateHosts    = "late launches"
)

// Shares of a step.
const (
	leastLeading = 0.10 // from which waiting for late launches leads, where experts are even
	leastWait    = 0.01 // from which waiting matters
)

// Leads reports that late launches, more than the loss by uneven experts, are what to look at
// first: waiting for them takes a tenth of the step, or a hundredth where experts are uneven
// too. All times are per step.
func (w *Waiting) Leads(lossNS, stepNS router.Number, uneven bool) bool {
	late := min(w.NS, w.WaitNS) // what the last rank has less of makes up for more
	return w.Name == LateHosts && late > lossNS &&
		(late > leastLeading*stepNS || uneven && late > leastWait*stepNS)
}

// Matters reports that ranks wait a hundredth of the step or more.
func (w *Waiting) Matters(stepNS router.Number) bool {
	return w.WaitNS > leastWait*stepNS && len(w.Ranks) > 0
}

// waited is waiting, and what the hosts of the ranks that are waited for did meanwhile.
type waited struct {
	replay.Wait
	did deeds
}

func (w *waited) add(o waited) {
	w.Add(o.Wait)
	for i, ns := range o.did {
		w.did[i] += ns
	}
}

// cause is the largest part, if it explains more than half of a wait.
func (w *waited) cause() Cause {
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
		c.Did = w.did.most()
	}
	return c
}

// arrival is the wait for a rank.
func (w *waited) arrival(rank Rank) Arrival {
	return Arrival{Rank: rank.Rank, Step: NoID, WaitNS: router.Number(w.NS), Cause: w.cause()}
}

// waits fills Waiting.
func (r *reduction) waits() {
	none, w := router.Undefined(), &r.trace.Waiting
	*w = Waiting{WaitNS: none, Cause: Cause{NS: none}, Ranks: []Arrival{}, Late: []Arrival{}}
	p, steps := r.trace.Replay(), []replay.StepWaits(nil)
	if p != nil {
		steps = slices.DeleteFunc(p.Run.Waits(), func(s replay.StepWaits) bool { return len(s.For) == 0 })
	}
	if w.Steps = len(steps); w.Steps == 0 {
		return
	}
	all, byRank, last := waited{}, make([]waited, len(r.ranks)), make([]int, len(r.ranks))
	longest, totals := make([]Arrival, len(steps)), make([]float64, len(steps))
	for i, s := range steps {
		var most waited
		latest := NoID // the rank that they wait for longest
		for _, rank := range slices.Sorted(maps.Keys(s.For)) {
			own := waited{s.For[rank], p.hosts[s.Step][rank]}
			totals[i] += own.NS
			if latest == NoID || own.NS > most.NS {
				latest, most = rank, own
			}
			own.Wait = own.Per(len(steps))
			byRank[rank].add(own)
			all.add(own)
		}
		last[latest]++
		longest[i] = most.arrival(r.ranks[latest].Rank)
		longest[i].Step = router.OptInt(p.steps[s.Step])
	}
	w.WaitNS, w.Cause = router.Number(all.NS), all.cause()
	for rank := range byRank {
		if one := byRank[rank].arrival(r.ranks[rank].Rank); one.WaitNS > 0 {
			one.LastSteps = last[rank]
			w.Ranks = append(w.Ranks, one)
		}
	}
	w.Late = append(w.Late, lateSteps(longest, totals, r.trace.Bound.StepNS.Float64())...)
	for _, list := range [][]Arrival{w.Ranks, w.Late} {
		slices.SortStableFunc(list, func(x, y Arrival) int { return cmp.Compare(y.WaitNS, x.WaitNS) })
	}
}

// A step is late where its waiting exceeds the median of the steps by leastLate of a step
// and by as many median absolute deviations as normal noise exceeds once in 3.5 million.
const (
	leastLate      = 0.05
	mostDeviations = 5 * 1.4826
)

// lateSteps are the steps with far more waiting than most, each of stepNS. Of two steps none is most.
func lateSteps(steps []Arrival, waits []float64, stepNS float64) (late []Arrival) {
	if len(steps) < 3 {
		return nil
	}
	usual, apart := stats.Median(waits), make([]float64, len(waits))
	for i, ns := range waits {
		apart[i] = max(ns-usual, usual-ns)
	}
	least := max(leastLate*stepNS, mostDeviations*stats.Median(apart))
	for i, s := range steps {
		if waits[i]-usual > least {
			late = append(late, s)
		}
	}
	return late
}
