package nsys

import (
	"math"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// StatsOf computes the statistics of durations in nanoseconds, which it sorts
// in place. Of none it gives zero instances and undefined means. BusyNS stays
// undefined: it needs the times of day.
//
// The p-th percentile is the nearest rank: the smallest duration that at least
// p % of the instances do not exceed, ⌈p·n/100⌉ in ascending order (from 1). It
// is always one of the durations.
func StatsOf(durations []int64) Stats {
	s := Stats{
		Instances: int64(len(durations)),
		BusyNS:    router.Undefined(), MeanNS: router.Undefined(), MedianNS: router.Undefined(), StdDevNS: router.Undefined(),
		P90NS: router.Undefined(), P99NS: router.Undefined(),
	}
	n := len(durations)
	if n == 0 {
		return s
	}
	slices.Sort(durations)
	for _, d := range durations {
		s.TotalNS += d
	}
	mean := float64(s.TotalNS) / float64(n)
	s.MeanNS = router.Number(mean)
	s.MinNS, s.MaxNS = durations[0], durations[n-1]
	s.MedianNS = router.Number((float64(durations[(n-1)/2]) + float64(durations[n/2])) / 2)
	s.P90NS = router.Number(durations[(90*n+99)/100-1])
	s.P99NS = router.Number(durations[(99*n+99)/100-1])
	if n > 1 {
		var squares float64
		for _, d := range durations {
			squares += (float64(d) - mean) * (float64(d) - mean)
		}
		s.StdDevNS = router.Number(math.Sqrt(squares / float64(n-1)))
	}
	return s
}

// durationGroups collects durations by group in one counting pass: no slice per
// group, no map per row.
type durationGroups struct {
	ends      []int // where each group's durations end
	durations []int64
	busy      []busyTime
}

// groupDurations sorts the events' durations into groups 0…n−1; a negative
// group leaves an event out. Each list is in the order of time.
func groupDurations(lists [][]kernelEvent, n int, groupOf func(list int, e *kernelEvent) int32) *durationGroups {
	g := &durationGroups{ends: make([]int, n+1), busy: make([]busyTime, n)}
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
			g.busy[b].begun = false // another rank works beside this one, not instead
		}
		for j := range list {
			e := &list[j]
			if group := groupOf(i, e); group >= 0 {
				g.durations[g.ends[group]] = e.duration
				g.ends[group]++
				g.busy[group].add(e.start, e.duration)
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
	s := StatsOf(g.durations[from:g.ends[group]])
	s.BusyNS = router.Number(g.busy[group].ns)
	return s
}

// busyTime is the length of the union of intervals that are added in the order of
// their starts.
type busyTime struct {
	ns    int64
	until int64
	begun bool
}

func (b *busyTime) add(start, duration int64) {
	end := start + duration
	if !b.begun || start >= b.until {
		b.ns += duration
		b.until, b.begun = end, true
		return
	}
	if end > b.until {
		b.ns += end - b.until
		b.until = end
	}
}
