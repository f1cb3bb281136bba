package steps

import (
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
	all, late := view(0, 8, 0), view(1, 9, 5e9)
	for _, c := range []struct {
		name          string
		a, b          []Span
		alike, clocks bool
		want          int
		known         bool
	}{
		{"a step later, wrong clock", all, late, true, true, 1, true},
		{"a step later, no clock", all, late, true, false, 1, true},
		{"a step later, right clock", all, view(1, 9, 0), true, true, 1, true},
		{"a step earlier", late, all, true, true, -1, true},
		{"fewer steps, no clock", all, view(3, 7, 0), false, false, 3, true},
		{"the same steps, clocks apart", all, view(0, 8, 9e9), true, true, 0, true},
		{"no collectives: as the recordings begin", without(all), without(late), true, true, 0, true},
		{"no collectives, fewer steps: by the clock", without(all), without(view(3, 7, 0)), false, true, 3, true},
		{"nothing tells", without(all), without(view(3, 7, 0)), false, false, 0, false},
		{"steps were lost between", without(all), without(append(view(0, 3, 0), view(5, 9, 0)...)), false, true, 0, false},
	} {
		shift, known := JoinOf(c.a, c.b, c.alike, c.clocks)
		if known != c.known || known && shift != c.want {
			t.Errorf("%s: %d, known %v; want %d", c.name, shift, known, c.want)
		}
	}
}
