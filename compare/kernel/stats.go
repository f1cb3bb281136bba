package kernel

import (
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/router"
)

// Stats are the statistics every group of durations carries, in nanoseconds.
// The standard deviation is a sample's (divisor n−1) and undefined for
// one instance; the median of an even count is the mean of the middle two.
type Stats struct {
	Instances int64         `json:"instances"`
	TotalNS   int64         `json:"total_ns"`
	MeanNS    router.Number `json:"mean_ns"`
	MedianNS  router.Number `json:"median_ns"`
	MinNS     int64         `json:"min_ns"`
	MaxNS     int64         `json:"max_ns"`
	StdDevNS  router.Number `json:"stddev_ns"`
}

// StatsOf computes the statistics of durations in nanoseconds, which it sorts
// in place. There is one at least.
func StatsOf(durations []int64) Stats {
	slices.Sort(durations)
	n := len(durations)
	s := Stats{Instances: int64(n), MinNS: durations[0], MaxNS: durations[n-1]}
	values := make([]float64, n)
	for i, d := range durations {
		values[i], s.TotalNS = float64(d), s.TotalNS+d
	}
	mean, deviation := stat.MeanStdDev(values, nil)
	s.MeanNS, s.StdDevNS = router.Number(mean), router.Number(deviation)
	s.MedianNS = router.Number((values[(n-1)/2] + values[n/2]) / 2)
	return s
}

// Busy is the length of the union of intervals that are added in the order of
// their starts.
type Busy struct {
	NS    int64
	until int64
	begun bool
}

// At is the length until a time that is not before the last start.
func (b *Busy) At(t int64) int64 {
	if !b.begun {
		return 0
	}
	return b.NS - max(0, b.until-t)
}

// Add adds the next interval.
func (b *Busy) Add(start, duration int64) {
	end := start + duration
	if b.begun {
		start, end = max(start, b.until), max(end, b.until)
	}
	b.NS += end - start
	b.until, b.begun = end, true
}
