package trace

import (
	"math"

	"github.com/moebalance/moebalance/compare/replay"
	"github.com/moebalance/moebalance/compare/trace/wait"
)

// waits fills Waiting.
func (r *reduction) waits() {
	r.trace.Waiting = wait.Unknown()
	if p := r.trace.Replay(); p != nil {
		r.trace.Waiting = wait.Judge(r.stepWaits(p), r.trace.Bound.StepNS.Float64())
	}
}

// stepWaits gives the waiting in the steps of a replay, with the ranks' own numbers, and what hosts
// did meanwhile.
func (r *reduction) stepWaits(p *Replay) (list []wait.Step) {
	for _, w := range p.run.Waits() {
		s := wait.Step{Number: p.steps[w.Step], For: map[int]*replay.Wait{}, Late: map[int]wait.Late{}}
		for at, one := range w.For {
			rank := r.ranks[at]
			from, to := rank.span(int32(s.Number))
			s.For[rank.Rank.Rank], s.Late[rank.Rank.Rank] = one, wait.Between(rank.Late, from, to)
		}
		list = append(list, s)
	}
	return list
}

// span is when a rank's first kernel of a step starts, and its last one.
func (p *rankEvents) span(step int32) (from, to int64) {
	from, to = math.MaxInt64, math.MinInt64
	for i := range p.events {
		if e := &p.events[i]; p.place(e).Step == step {
			from, to = min(from, e.Start), max(to, e.Start)
		}
	}
	return from, to
}
