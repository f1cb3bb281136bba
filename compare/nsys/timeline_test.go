package nsys

import (
	"math/rand/v2"
	"testing"

	"github.com/moebalance/moebalance/compare/nsys/kernel"
)

// slowLocation looks at every range for every query.
func slowLocation(ranges []labeledRange, at int64) location {
	p := unattributed
	var step, layer, expert, phase *labeledRange
	better := func(best **labeledRange, m *labeledRange) {
		b := *best
		if b == nil || m.start > b.start || m.start == b.start && m.end <= b.end {
			*best = m
		}
	}
	for i := range ranges {
		m := &ranges[i]
		if m.start > at || m.end < at {
			continue
		}
		if m.step != None {
			better(&step, m)
		}
		if m.layer != None {
			better(&layer, m)
		}
		if m.expert != None {
			better(&expert, m)
		}
		if m.phase != "" {
			better(&phase, m)
		}
	}
	if step != nil {
		p.Step = step.step
	}
	if layer != nil {
		p.Layer = layer.layer
	}
	if expert != nil {
		p.Expert = expert.expert
	}
	if phase != nil {
		p.Phase = phase.phase
	}
	return p
}

// Ranges that nest, overlap, touch, are empty or repeat: the sweep and the slow
// search agree on every moment.
func TestLocateAgreesWithSearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var line timeline
		width := int64(1 + rng.IntN(60))
		for i := range rng.IntN(40) {
			start := rng.Int64N(width)
			m := labeledRange{start: start, end: start + rng.Int64N(width), step: None,
				label: &label{layer: None, expert: None}}
			n := int32(i)
			switch rng.IntN(4) {
			case 0:
				m.step = n
			case 1:
				m.layer = n
			case 2:
				m.layer, m.expert, m.phase = n, n, PhaseExperts
			default:
				m.phase = kernel.Phases[rng.IntN(len(kernel.Phases))]
			}
			line.ranges = append(line.ranges, m)
		}
		var at []int64
		for i := range rng.IntN(50) {
			at, line.queries = append(at, rng.Int64N(2*width)), append(line.queries, int32(i))
		}
		line.sortRanges()
		seen := 0
		line.locate(func(query int32) int64 { return at[query] }, func(target int32, got location) {
			seen++
			if want := slowLocation(line.ranges, at[target]); got != want {
				t.Fatalf("at %d of %+v:\nwant %+v\nhave %+v", at[target], line.ranges, want, got)
			}
		})
		if seen != len(at) {
			t.Fatalf("want %d queries, have %d", len(at), seen)
		}
	}
}

// Whatever the ranges, the sweep and the search agree.
func FuzzLocate(f *testing.F) {
	f.Add([]byte{0, 10, 1, 5, 20, 2, 7, 3, 3}, []byte{1, 6, 30})
	f.Add([]byte{9, 0, 0, 9, 0, 1, 9, 0, 2}, []byte{9, 9})
	f.Fuzz(func(t *testing.T, ranges, queries []byte) {
		var line timeline
		for i := 0; i+2 < len(ranges); i += 3 {
			m := labeledRange{start: int64(ranges[i]), end: int64(ranges[i]) + int64(ranges[i+1]), step: None,
				label: &label{layer: None, expert: None}}
			n := int32(ranges[i+2] >> 3)
			if ranges[i+2]&1 != 0 {
				m.step = n
			}
			if ranges[i+2]&2 != 0 {
				m.layer, m.expert = n, n
			}
			if ranges[i+2]&4 != 0 {
				m.phase = kernel.Phases[int(n)%len(kernel.Phases)]
			}
			line.ranges = append(line.ranges, m)
		}
		for i := range queries {
			line.queries = append(line.queries, int32(i))
		}
		line.sortRanges()
		line.locate(func(query int32) int64 { return int64(queries[query]) }, func(target int32, got location) {
			at := int64(queries[target])
			if want := slowLocation(line.ranges, at); got != want {
				t.Fatalf("at %d of %+v:\nwant %+v\nhave %+v", at, line.ranges, want, got)
			}
		})
		line.numberSteps()
		for _, m := range line.ranges {
			if m.step < None {
				t.Fatalf("a step without a number is left: %+v", line.ranges)
			}
		}
	})
}

func TestMillionNestedRanges(t *testing.T) {
	const n = 1_000_000
	var line timeline
	for i := range int64(n) {
		line.ranges = append(line.ranges, labeledRange{start: i, end: 3*n - i, step: None,
			label: &label{layer: int32(i), expert: None}})
	}
	for i := range int64(100) {
		line.queries = append(line.queries, int32(i))
	}
	line.sortRanges()
	line.locate(func(query int32) int64 { return n + int64(query)*n/100 }, func(target int32, got location) {
		// at n + 10 000 i the ranges with 3n − m ≥ n + 10 000 i are open
		if want := min(int32(n)-1, int32(2*n-int(target)*n/100)); got.Layer != want {
			t.Fatalf("moment %d: want layer %d, have %d", target, want, got.Layer)
		}
	})
}

func TestStepsWithoutNumberAndRepeatedOnes(t *testing.T) {
	steps := func(ranges ...labeledRange) (numbers []int32, renumbered bool) {
		line := timeline{ranges: ranges}
		line.sortRanges()
		renumbered = line.numberSteps()
		for _, m := range line.ranges {
			numbers = append(numbers, m.step)
		}
		return numbers, renumbered
	}
	m := func(start, end int64, step int32) labeledRange {
		return labeledRange{start, end, step, &label{layer: None, expert: None}}
	}
	for _, c := range []struct {
		what       string
		ranges     []labeledRange
		want       []int32
		renumbered bool
	}{
		{"numbered once each: kept", []labeledRange{m(0, 9, 7), m(10, 19, 8)}, []int32{7, 8}, false},
		{"a number twice: by order", []labeledRange{m(0, 9, 3), m(10, 19, 3)}, []int32{0, 1}, true},
		{"no numbers: by order", []labeledRange{m(10, 19, unnumbered), m(0, 9, unnumbered)}, []int32{0, 1}, false},
		{"one without a number: by order", []labeledRange{m(0, 9, 4), m(10, 19, unnumbered)}, []int32{0, 1}, true},
		{"an unnumbered one inside a numbered one is part of it", []labeledRange{m(0, 9, 5), m(1, 8, unnumbered),
			m(10, 19, 6)}, []int32{5, None, 6}, false},
	} {
		got, renumbered := steps(c.ranges...)
		if len(got) != len(c.want) || renumbered != c.renumbered {
			t.Fatalf("%s: have %v, %v", c.what, got, renumbered)
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: want %v, have %v", c.what, c.want, got)
			}
		}
	}
}
