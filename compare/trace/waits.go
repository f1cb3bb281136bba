package trace

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/replay"
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
}

// Arrival is how long the ranks wait for one of them, mean over all steps.
type Arrival struct {
	Rank   int           `json:"rank"`
	WaitNS router.Number `json:"mean_wait_ns"`
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

// mean is the wait and its cause, mean over a number of steps.
func (w *waited) mean(steps int) (ns router.Number, cause Cause) {
	cause = w.cause()
	cause.NS /= router.Number(steps)
	return router.Number(w.NS) / router.Number(steps), cause
}

// waits fills Waiting, and the stays in RankSteps.
func (r *reduction) waits() {
	none, w, p := router.Undefined(), &r.trace.Waiting, r.trace.Replay()
	*w = Waiting{WaitNS: none, Cause: Cause{NS: none}}
	if p == nil || !p.Run.Holds() {
		return
	}
	for i, stay := range p.Run.Stays() {
		s := &r.trace.RankSteps[i]
		s.WaitNS, s.TransferNS = router.Number(stay.WaitNS), router.Number(stay.TransferNS)
	}
	all, byRank := waited{}, make([]waited, len(r.ranks))
	for _, one := range p.Run.Waits() {
		own := waited{one, p.hosts[one.Step][one.Rank]}
		byRank[one.Rank].add(own)
		all.add(own)
	}
	w.Steps = p.Steps
	w.WaitNS, w.Cause = all.mean(w.Steps)
	for i, p := range r.ranks {
		if ns, cause := byRank[i].mean(w.Steps); ns > 0 {
			w.Ranks = append(w.Ranks, Arrival{p.Rank.Rank, ns, cause})
		}
	}
	slices.SortStableFunc(w.Ranks, func(x, y Arrival) int { return cmp.Compare(y.WaitNS, x.WaitNS) })
}
