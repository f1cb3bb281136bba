package kernel

import (
	"hash/maphash"
	"math"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// Stats are the statistics every group of durations carries, in nanoseconds.
// The standard deviation is that of a sample (divisor n−1) and undefined for
// one instance; the median of an even count is the mean of the middle two.
//
// BusyNS is the length of the union of the intervals on each rank, summed over
// ranks: at most TotalNS, less where instances overlap. It is undefined where the
// durations have no intervals of their own: those of allocated experts.
type Stats struct {
	Instances int64         `json:"instances"`
	TotalNS   int64         `json:"total_ns"`
	BusyNS    router.Number `json:"busy_ns"`
	MeanNS    router.Number `json:"mean_ns"`
	MedianNS  router.Number `json:"median_ns"`
	MinNS     int64         `json:"min_ns"`
	MaxNS     int64         `json:"max_ns"`
	StdDevNS  router.Number `json:"stddev_ns"`
	P90NS     router.Number `json:"p90_ns"`
	P99NS     router.Number `json:"p99_ns"`
}

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
		BusyNS:    router.Undefined(), MeanNS: router.Undefined(), MedianNS: router.Undefined(),
		StdDevNS: router.Undefined(),
		P90NS:    router.Undefined(), P99NS: router.Undefined(),
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

// Busy is the length of the union of intervals that are added in the order of
// their starts.
type Busy struct {
	NS    int64
	until int64
	begun bool
}

// Add adds the next interval.
func (b *Busy) Add(start, duration int64) {
	end := start + duration
	if !b.begun || start >= b.until {
		b.NS += duration
		b.until, b.begun = end, true
		return
	}
	if end > b.until {
		b.NS += end - b.until
		b.until = end
	}
}

// Next begins anew beside what was added: the intervals of another rank run beside those of
// this one, not instead.
func (b *Busy) Next() { b.begun = false }

// Index numbers values by first sight; neighbors are often alike. It holds each value
// once: a map of them would take three times as much, and a capture with ranges for
// every expert has a location for every ten kernels.
type Index[T comparable] struct {
	seed   maphash.Seed
	table  []int32 // numbers plus 1 by hash, 0 where free; at least half are
	Values []T
	last   int32
}

// NewIndex has room for a number of values.
func NewIndex[T comparable](room int) *Index[T] {
	x := &Index[T]{seed: maphash.MakeSeed()}
	x.grow(room)
	return x
}

// Number is that of a value.
func (x *Index[T]) Number(v T) int32 {
	if len(x.Values) > 0 && x.Values[x.last] == v {
		return x.last
	}
	at := x.find(v)
	if x.table[at] == 0 {
		x.Values = append(x.Values, v)
		x.table[at] = int32(len(x.Values))
		if 2*len(x.Values) > len(x.table) {
			x.grow(len(x.Values))
			at = x.find(v)
		}
	}
	x.last = x.table[at] - 1
	return x.last
}

// find is where in the table a value is, or belongs.
func (x *Index[T]) find(v T) uint64 {
	mask := uint64(len(x.table) - 1)
	at := maphash.Comparable(x.seed, v) & mask
	for x.table[at] > 0 && x.Values[x.table[at]-1] != v {
		at = (at + 1) & mask
	}
	return at
}

// grow makes a table for a number of values.
func (x *Index[T]) grow(room int) {
	size := 16
	for size < 2*room {
		size *= 2
	}
	x.table = make([]int32, size)
	x.Values = slices.Grow(x.Values, size/2-len(x.Values))
	for i, v := range x.Values {
		x.table[x.find(v)] = int32(i + 1)
	}
}
