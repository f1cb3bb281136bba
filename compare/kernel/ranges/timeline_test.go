package ranges

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/testdata/require"
)

// slowLocation looks at every range for every query.
func slowLocation(ranges []Range, at int64) (p Location) {
	var best openRanges // one for each thing
	for i := range ranges {
		m := &ranges[i]
		for what, says := range []bool{m.Step != NoID, m.Layer != NoID, m.Expert != NoID, m.Phase != ""} {
			b := best[what]
			if says && m.Start <= at && at <= m.End && (len(b) == 0 || m.Start > b[0].Start ||
				m.Start == b[0].Start && m.End <= b[0].End) {
				best[what] = []*Range{m}
			}
		}
	}
	best.at(at, &p)
	return p
}

// Ranges that nest, overlap, touch, are empty or repeat: the sweep and the slow search agree on
// every moment.
func FuzzLocate(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		bytes := func(most, below int) []byte {
			list := make([]byte, rng.IntN(most))
			for i := range list {
				list[i] = byte(rng.IntN(below))
			}
			return list
		}
		f.Add(bytes(120, 60), bytes(50, 120))
	}
	f.Add([]byte{0, 10, 1, 5, 20, 2, 7, 3, 3}, []byte{1, 6, 30})
	f.Add([]byte{9, 0, 0, 9, 0, 1, 9, 0, 2}, []byte{9, 9})
	f.Fuzz(func(t *testing.T, ranges, queries []byte) {
		var line Timeline
		for i := 0; i+2 < len(ranges); i += 3 {
			m := Range{Start: int64(ranges[i]), End: int64(ranges[i]) + int64(ranges[i+1]), Step: NoID,
				Label: &Label{Location: Location{Layer: NoID, Expert: NoID}}}
			n := int32(ranges[i+2] >> 3)
			if ranges[i+2]&1 != 0 {
				m.Step = n
			}
			if ranges[i+2]&2 != 0 {
				m.Layer, m.Expert = n, n
			}
			if ranges[i+2]&4 != 0 {
				m.Phase = kernel.Phases[int(n)%len(kernel.Phases)]
			}
			line.Ranges = append(line.Ranges, m)
		}
		for i := range queries {
			line.Queries = append(line.Queries, int32(i))
		}
		line.Number(line.Hooked())
		line.Locate(func(query int32) int64 { return int64(queries[query]) }, func(target int32, got Location) {
			at := int64(queries[target])
			if want := slowLocation(line.Ranges, at); got != want {
				t.Fatalf("at %d of %+v:\nwant %+v\nhave %+v", at, line.Ranges, want, got)
			}
		})
		for _, m := range line.Ranges {
			if m.Step < NoID {
				t.Fatalf("a step without a number is left: %+v", line.Ranges)
			}
		}
	})
}

func TestStepsWithoutNumberAndRepeatedOnes(t *testing.T) {
	m := func(start, end int64, step int32) Range {
		return Range{Start: start, End: end, Step: step, Label: &Label{Location: Location{Step: step, Layer: NoID, Expert: NoID}}}
	}
	for _, c := range []struct {
		what   string
		ranges []Range
		want   []int32
	}{
		{"numbered once each: kept", []Range{m(0, 9, 7), m(10, 19, 8)}, []int32{7, 8}},
		{"a number twice: by order", []Range{m(0, 9, 3), m(10, 19, 3)}, []int32{0, 1}},
		{"no numbers: by order", []Range{m(10, 19, unnumbered), m(0, 9, unnumbered)}, []int32{0, 1}},
		{"one without a number: by order", []Range{m(0, 9, 4), m(10, 19, unnumbered)}, []int32{0, 1}},
		{"an unnumbered one inside a numbered one is part of it", []Range{m(0, 9, 5), m(1, 8, unnumbered),
			m(10, 19, 6)}, []int32{5, NoID, 6}},
	} {
		line, got := Timeline{Ranges: c.ranges}, []int32(nil)
		line.Number(line.Hooked())
		for _, m := range line.Ranges {
			got = append(got, m.Step)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: want %v, have %v", c.what, c.want, got)
		}
	}
}

// Where the hook marks steps, a profiler's steps around them and an engine's within are none.
func TestStepsOfTheHook(t *testing.T) {
	patterns := require.Value(NewPatterns())
	var line Timeline
	add := func(start, end int64, name string) {
		l := patterns.Label(name)
		line.Ranges = append(line.Ranges, Range{Start: start, End: end, Step: l.Step, Label: &l})
	}
	add(0, 90, "ProfilerStep#12")
	add(10, 40, "moebalance step=12 tokens=30 sequence=1 arm=normal")
	add(12, 38, "execute_context_2(28)_generation_2(2)")
	add(41, 48, "execute_context_0(0)_generation_2(2)")
	add(50, 80, "moebalance step=13 tokens=2 sequence=2 arm=perfect")
	line.Number(line.Hooked())
	for i, want := range []int32{NoID, 12, NoID, NoID, 13} {
		if have := line.Ranges[i].Step; have != want {
			t.Errorf("%s: have step %d, want %d", line.Ranges[i].Name, have, want)
		}
	}
	stream := Timeline{Ranges: []Range{line.Ranges[2]}} // where PyTorch shows the engine's ranges again
	stream.Ranges[0].Step = unnumbered
	if stream.Number(true); stream.Hooked() || stream.Ranges[0].Step != NoID {
		t.Errorf("have step %d of a stream in a process that the hook marks", stream.Ranges[0].Step)
	}
	want := Batch{Named: true, Prefill: true, Tokens: 30, Arm: "normal"}
	if have := BatchOf(line.Ranges[1].Name); have != want {
		t.Errorf("have %+v, want %+v", have, want)
	}
}
