package steps

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Span is when a rank ran a step.
type Span struct {
	Step     int32
	From, To int64
}

// Shift is the number of the step of one rank that is the first of another, by the time of
// day. Ranks that recorded as many blocks from the same layer on recorded the same steps, as
// the clocks of two hosts differ, unless step by step they end unequally far apart: ranks
// leave collectives together.
func Shift(a, b []Span, alike bool) (n int, ok bool) {
	for j, s := range b {
		i := slices.IndexFunc(a, func(o Span) bool { return 2*(min(s.To, o.To)-max(s.From, o.From)) > s.To-s.From })
		if n, ok = i-j, i >= 0; ok {
			break
		}
	}
	if alike && (!ok || n == 0 || unequally(a, b, 0) < unequally(a, b, n)/2) {
		return 0, true
	}
	shortest := slices.MinFunc(b, func(x, y Span) int { return cmp.Compare(x.To-x.From, y.To-y.From) })
	if ends := apart(a, b, n); ok && floats.Max(ends)-floats.Min(ends) > float64(shortest.To-shortest.From) {
		return n, false // one lacks a step between
	}
	return n, ok && (!alike || unequally(a, b, n) < unequally(a, b, 0)/2)
}

// unequally is by how much the distance varies between the ends of a rank's steps and another's.
func unequally(a, b []Span, shift int) float64 { return stat.StdDev(apart(a, b, shift), nil) }

// apart are these distances.
func apart(a, b []Span, shift int) (ns []float64) {
	for j, s := range b {
		if i := j + shift; 0 <= i && i < len(a) {
			ns = append(ns, float64(a[i].To-s.To))
		}
	}
	return ns
}
