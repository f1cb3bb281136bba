package wait

import (
	"cmp"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/nsys/kernel"
	"github.com/moebalance/moebalance/router"
)

// clock brings a rank's times to the first rank's.
type clock struct {
	offset int64
	drift  float64 // of the time since from
	from   int64
}

func (c clock) common(t int64) int64 {
	return t + c.offset + int64(c.drift*float64(t-c.from))
}

// leaving is the end of a collective in a rank's own time, and what to add to it for the
// first rank's end of the same one.
type leaving struct{ at, add int64 }

// clockOf is the clock by which ranks leave collectives together: the median of what to add.
// Where that fits less than half as well as a clock that runs faster or slower, the line
// through the medians of the first and the last third, as far as clocks drift.
func clockOf(list []leaving) clock {
	slices.SortFunc(list, func(a, b leaving) int { return cmp.Compare(a.at, b.at) })
	steady := clock{offset: middle(list, func(l leaving) int64 { return l.add })}
	if len(list) < leastDrifting {
		return steady
	}
	third := len(list) / 3
	first, last := list[:third], list[len(list)-third:]
	at, add := func(l leaving) int64 { return l.at }, func(l leaving) int64 { return l.add }
	over := middle(last, at) - middle(first, at)
	if over == 0 {
		return steady
	}
	drifting := clock{drift: float64(middle(last, add)-middle(first, add)) / float64(over), from: list[0].at}
	drifting.offset = middle(list, func(l leaving) int64 { return l.at + l.add - drifting.common(l.at) })
	if math.Abs(drifting.drift) < mostDrift && 2*residual(list, drifting) < residual(list, steady) {
		return drifting
	}
	return steady
}

// A drift is told from so many collectives, and quartz that is kept in step drifts less.
const (
	leastDrifting = 30
	mostDrift     = 1e-3
)

// residual is the median distance of the ends that a clock leaves.
func residual(list []leaving, c clock) router.Number {
	var apart []int64
	for _, l := range list {
		d := l.at + l.add - c.common(l.at)
		apart = append(apart, max(d, -d))
	}
	return kernel.StatsOf(apart).MedianNS
}

func middle(list []leaving, of func(leaving) int64) int64 {
	var values []int64
	for _, l := range list {
		values = append(values, of(l))
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

// align finds the clock of each rank, and fills Alignment.
func (a *analysis) align() {
	base := &a.Ranks[0]
	for i := range a.Ranks {
		r := &a.Ranks[i]
		l := Alignment{Rank: r.Number, Basis: "one report", ResidualNS: router.Undefined()}
		if r.Report != base.Report {
			l.Basis, r.offset = "session time", r.Session-base.Session
		}
		var left []leaving
		for _, v := range a.order {
			if a.matched[v] {
				for k, m := range r.collectives[v] {
					left = append(left, leaving{m.end, base.collectives[v][k].end - m.end})
				}
			}
		}
		if l.Collectives = len(left); len(left) > 0 {
			if r.Report != base.Report {
				l.Basis, r.clock = "collective ends", clockOf(left)
			}
			l.ResidualNS = residual(left, r.clock)
		}
		l.OffsetNS, l.DriftPPM = r.offset, 1e6*r.drift
		a.Alignment = append(a.Alignment, l)
	}
}
