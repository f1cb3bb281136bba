package trace

import (
	"cmp"
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

// arrival is the wait for a rank, mean over a number of steps.
func (w *waited) arrival(rank Rank, steps int) Arrival {
	a := Arrival{Rank: rank.Rank, Step: NoID, WaitNS: router.Number(w.NS) / router.Number(steps), Cause: w.cause()}
	a.NS /= router.Number(steps)
	return a
}

// waits fills Waiting.
func (r *reduction) waits() {
	none, w, p := router.Undefined(), &r.trace.Waiting, r.trace.Replay()
	*w = Waiting{WaitNS: none, Cause: Cause{NS: none}, Ranks: []Arrival{}, Late: []Arrival{}}
	if p == nil {
		return
	}
	all, byRank, last := waited{}, make([]waited, len(r.ranks)), make([]int, len(r.ranks))
	var longest []waited // of a step
	var totals []float64 // of steps
	for _, one := range p.Run.Waits() {
		own, n := waited{one, p.hosts[one.Step][one.Rank]}, len(longest)
		if n == 0 || longest[n-1].Step != one.Step {
			longest, totals, n = append(longest, own), append(totals, 0), n+1
		}
		if totals[n-1] += own.NS; own.NS > longest[n-1].NS {
			longest[n-1] = own
		}
		byRank[one.Rank].add(own)
		all.add(own)
	}
	if w.Steps = len(longest); w.Steps == 0 {
		return
	}
	steps := make([]Arrival, len(longest))
	for i, own := range longest {
		last[own.Rank]++
		steps[i] = own.arrival(r.ranks[own.Rank].Rank, 1)
		steps[i].Step = router.OptInt(p.steps[own.Step])
	}
	over := all.arrival(Rank{}, w.Steps)
	w.WaitNS, w.Cause = over.WaitNS, over.Cause
	for rank := range byRank {
		if one := byRank[rank].arrival(r.ranks[rank].Rank, w.Steps); one.WaitNS > 0 {
			one.LastSteps = last[rank]
			w.Ranks = append(w.Ranks, one)
		}
	}
	w.Late = append(w.Late, lateSteps(steps, totals, r.trace.Bound.StepNS.Float64())...)
	for _, list := range [][]Arrival{w.Ranks, w.Late} {
		slices.SortStableFunc(list, func(x, y Arrival) int { return cmp.Compare(y.WaitNS, x.WaitNS) })
	}
}

// A step is late where its waiting exceeds the median of the steps by leastLate of a step
// and by more median absolute deviations than normal noise reaches once in 3.5 million steps.
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
