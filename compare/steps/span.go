package steps

import (
	"math"
	"slices"
)

// Span is a step of a rank: when it ran, and when its collectives ended.
type Span struct {
	Step     int32
	From, To int64
	Left     []int64
}

const (
	mostShifted   = 8    // steps by which the clocks of ranks, or their recordings, are apart
	fewestLeft    = 8    // collectives that tell, beyond one of each step
	closer        = 2    // times as close as the next best join
	mostApartLeft = 20e3 // nanoseconds between the ends of a collective on two ranks
	surely        = 2.5  // times as close, of ranks that surely met: in real captures no other join is, but 5.4 times less
)

// JoinOf matches the steps of two ranks: shift is the number of the other's step that is the first of this one,
// not known where nothing tells. Ranks leave a collective together, whatever
// their clocks say: in the right join the ends of a step's collectives lie equally far apart, 30 ns in traces of a
// simulator and below 75 µs in real ones. By the time of day, if clocks are known, or as their recordings begin, if
// they recorded alike, ranks meet otherwise only where another join is closer by a factor.
func JoinOf(a, b []Span, alike, clocks bool) (shift int, known bool) {
	if clocks {
		shift, known = byClock(a, b)
	}
	if alike && (!known || apart(a, b, 0) <= closer*apart(a, b, shift)) {
		shift, known = 0, true
	}
	best, next, at := math.Inf(1), math.Inf(1), 0
	for n := -mostShifted; n <= mostShifted; n++ {
		switch by := apart(a, b, n); {
		case by < best:
			best, next, at = by, best, n
		case by < next:
			next = by
		}
	}
	prior, others := apart(a, b, shift), !math.IsInf(next, 1)
	if best <= mostApartLeft && (!known && best < next/closer || others && best < next/surely ||
		!math.IsInf(prior, 1) && best < prior/surely) {
		shift, known = at, true
	}
	return shift, known
}

// byClock joins steps that overlap for the most part.
func byClock(a, b []Span) (shift int, ok bool) {
	for j, s := range b {
		i := slices.IndexFunc(a, func(o Span) bool { return 2*(min(s.To, o.To)-max(s.From, o.From)) > s.To-s.From })
		if i >= 0 {
			return i - j, true
		}
	}
	return 0, false
}

// apart is by how much the distance varies between the ends of a rank's collectives and another's within their
// steps, the median; infinite where they have one step in common, too few collectives, or other ones in a step between.
func apart(a, b []Span, shift int) float64 {
	var off []float64
	common := 0
	from, to := max(0, shift), min(len(a), len(b)+shift) // of the steps in common
	for i := from; i < to; i++ {
		left, other := a[i].Left, b[i-shift].Left
		switch {
		case len(left) == 0 || len(other) == 0: // layers are not known
			continue
		case len(left) != len(other) && from < i && i < to-1:
			return math.Inf(1)
		case len(left) != len(other): // cut by an end of the recording
			continue
		}
		common++
		by := make([]int64, len(left))
		for k := range by {
			by[k] = left[k] - other[k]
		}
		sorted := slices.Sorted(slices.Values(by))
		middle := sorted[len(sorted)/2]
		for _, ns := range by {
			off = append(off, math.Abs(float64(ns-middle)))
		}
	}
	if common < 2 || len(off)-common < fewestLeft {
		return math.Inf(1)
	}
	slices.Sort(off)
	return off[len(off)/2]
}
