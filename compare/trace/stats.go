package trace

import (
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/router"
)

// durationGroups collects durations by group in one counting pass: no slice per
// group, no map per row.
type durationGroups struct {
	ends      []int // where each group's durations end
	durations []int64
	busy      []kernel.Busy
}

// groupDurations sorts the events' durations into groups 0…n−1; a negative
// group leaves an event out. Each list is in the order of time.
func groupDurations(lists [][]kernelEvent, n int, groupOf func(list int, e *kernelEvent) int32) *durationGroups {
	g := &durationGroups{ends: make([]int, n+1), busy: make([]kernel.Busy, n)}
	for i, list := range lists {
		for j := range list {
			if group := groupOf(i, &list[j]); group >= 0 {
				g.ends[group+1]++
			}
		}
	}
	for i := range n {
		g.ends[i+1] += g.ends[i]
	}
	g.durations = make([]int64, g.ends[n])
	for i, list := range lists {
		for b := range g.busy {
			g.busy[b].Next() // another rank works beside this one, not instead
		}
		for j := range list {
			e := &list[j]
			if group := groupOf(i, e); group >= 0 {
				g.durations[g.ends[group]] = e.duration
				g.ends[group]++
				g.busy[group].Add(e.start, e.duration)
			}
		}
	}
	return g
}

// stats are the statistics of one group.
func (g *durationGroups) stats(group int) Stats {
	from := 0
	if group > 0 {
		from = g.ends[group-1]
	}
	s := kernel.StatsOf(g.durations[from:g.ends[group]])
	s.BusyNS = router.Number(g.busy[group].NS)
	return s
}
