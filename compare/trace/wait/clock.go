package wait

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/stats"
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
	a.Alignment = nil
	for i := range a.Ranks {
		r := &a.Ranks[i]
		l := Alignment{Rank: r.Number, Basis: "one report", ResidualNS: router.Undefined()}
		r.clock = clock{}
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

// like is collectives that the same code runs in every step and layer.
type like struct {
	phase kernel.Phase
	name  string
	nth   int
}

// leastParted is how many collectives tell whether they are of all ranks.
const leastParted = 8

// dropParted takes collectives that ranks do not leave together for those of parts of the
// ranks, such as tensor-parallel groups: their ends are mostly further apart than the last
// rank's own takes. Not where all are so, which is a matter of clocks.
func (a *analysis) dropParted() (dropped bool) {
	apart, took := map[like][]float64{}, map[like][]float64{}
	each := func(visit func(v key, k int, l like)) {
		for _, v := range a.order {
			for k := range a.Ranks[0].collectives[v] {
				if a.matched[v] {
					visit(v, k, like{v.Phase, v.name, k})
				}
			}
		}
	}
	each(func(v key, k int, l like) {
		var first, last, least int64
		for i := range a.Ranks {
			r := &a.Ranks[i]
			m := r.collectives[v][k]
			end := r.common(m.end)
			if i == 0 {
				first, last, least = end, end, m.end-m.start
			}
			first, last, least = min(first, end), max(last, end), min(least, m.end-m.start)
		}
		apart[l], took[l] = append(apart[l], float64(last-first)), append(took[l], float64(least))
	})
	parted := map[like]bool{}
	for l := range apart {
		parted[l] = len(apart[l]) >= leastParted && stats.Median(apart[l]) > stats.Median(took[l])
	}
	var drop []key
	each(func(v key, _ int, l like) {
		if parted[l] {
			drop = append(drop, v)
		}
	})
	if len(drop) == 0 || !slices.Contains(slices.Collect(maps.Values(parted)), false) {
		return false
	}
	for _, v := range drop {
		a.matched[v] = false
	}
	return true
}
