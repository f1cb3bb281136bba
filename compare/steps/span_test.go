package steps

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Two ranks leave every collective together. One may begin to record a step later, by a clock that is off by
// seconds; what their steps take tells nothing, the collectives within them do.
func TestJoinOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var run []Span
	at := int64(0)
	for step := range 9 {
		s := Span{Step: int32(step), From: at}
		for range 12 {
			at += 70_000 + rng.Int64N(2_000)
			s.Left = append(s.Left, at)
		}
		at = s.From + 12*72_000
		s.To = at
		run = append(run, s)
	}
	view := func(from, to int, clock int64) (spans []Span) {
		for i, s := range run[from:to] {
			o := Span{Step: int32(i), From: s.From + clock, To: s.To + clock}
			for _, left := range s.Left {
				o.Left = append(o.Left, left+clock+rng.Int64N(60))
			}
			spans = append(spans, o)
		}
		return spans
	}
	without := func(spans []Span) (bare []Span) {
		for _, s := range spans {
			s.Left = nil
			bare = append(bare, s)
		}
		return bare
	}
	all, late, cut := view(0, 8, 0), view(1, 9, 5e9), view(1, 9, 5e9)
	cut[0].Left, cut[7].Left = cut[0].Left[1:], cut[7].Left[:11]
	for _, c := range []struct {
		name          string
		a, b          []Span
		alike, clocks bool
		want          int
		known         bool
	}{
		{"a step later, wrong clock", all, late, true, true, 1, true},
		{"a step earlier, cut at both ends", cut, all, true, true, -1, true},
		{"fewer steps, no clock", all, view(3, 7, 0), false, false, 3, true},
		{"the same steps, clocks apart", all, view(0, 8, 9e9), true, true, 0, true},
		{"no collectives: as the recordings begin", without(all), without(late), true, true, 0, true},
		{"no collectives, fewer steps: by the clock", without(all), without(view(3, 7, 0)), false, true, 3, true},
		{"nothing tells", without(all), without(view(3, 7, 0)), false, false, 0, false},
	} {
		if shift, known := JoinOf(c.a, c.b, c.alike, c.clocks); known != c.known || known && shift != c.want {
			t.Errorf("%s: %d, known %v; want %d", c.name, shift, known, c.want)
		}
	}
	inner := view(0, 8, 0)
	inner[3].Left = inner[3].Left[1:]
	if by := apart(all, inner, 0); !math.IsInf(by, 1) {
		t.Errorf("joined by %v where a step between has other collectives", by)
	}
}

// The ends of collectives are as far apart as by says in the join of a step n, |n·by − off|: joins are closer where that
// is half of the next best one, surely 0.4 of it, and 20 µs at most, over eight collectives beyond one of each step, up
// to eight steps away.
func TestJoinAtItsLimits(t *testing.T) {
	for _, c := range []struct {
		name          string
		steps, each   int // collectives of a step
		by, off       int64
		behind, clock int // the first step of the other rank, and by its clock
		alike, clocks bool
		want          int
		known         bool
	}{
		{"half of the next", 3, 4, 31e3, 10e3, 0, 0, false, false, 0, true},
		{"more than half", 3, 5, 29e3, 10e3, 0, 0, false, false, 0, false},
		{"within 20 µs", 3, 4, 199e3, 19.9e3, 0, 0, false, false, 0, true},
		{"beyond 20 µs", 3, 4, 201e3, 20.1e3, 0, 0, false, false, 0, false},
		{"eight collectives beyond one of each step", 2, 5, 90e3, 1e3, 0, 0, false, false, 0, true},
		{"six of eight, as two tell nothing", 2, 4, 90e3, 1e3, 0, 0, false, false, 0, false},
		{"eight steps later", 12, 4, 90e3, 1e3, 8, 0, false, false, 8, true},
		{"nine steps later", 12, 4, 90e3, 1e3, 9, 0, false, false, 0, false},
		{"4.1 times as close as the clock's, 2.1 times as the next", 4, 4, 31e3, 10e3, 1, 0, false, true, 1, true},
		{"2.6 times as close as the clock's", 5, 4, 36e3, 10e3, 1, 2, false, true, 1, true},
		{"2.4 times as close as the clock's", 5, 4, 34e3, 10e3, 1, 2, false, true, 2, true},
		{"as they begin, 1.9 times the clock's", 4, 4, 29e3, 19e3, 0, 1, true, true, 0, true},
		{"as they begin, 2.1 times the clock's", 4, 4, 31e3, 21e3, 0, 1, true, true, 1, true},
	} {
		var a, b []Span
		const step = 1e9
		for i := range int64(c.steps) {
			one, other := Span{From: i * step, To: (i + 1) * step}, Span{From: (i + int64(c.clock)) * step}
			other.To = other.From + step
			for k := range int64(c.each) { // every other collective tells
				one.Left = append(one.Left, k*1e6+k%2*i*c.by)
				other.Left = append(other.Left, k*1e6+k%2*((i+int64(c.behind))*c.by+c.off))
			}
			a, b = append(a, one), append(b, other)
		}
		if shift, known := JoinOf(a, b, c.alike, c.clocks); known != c.known || known && shift != c.want {
			t.Errorf("%s: %d, known %v", c.name, shift, known)
		}
	}
}
