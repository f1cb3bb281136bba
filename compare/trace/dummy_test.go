package trace

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/testdata/require"
)

// Of batches without a request the first runs experts for the tokens of other ranks, and is a step; the second
// runs none: vLLM asked for work, and had none.
func TestDummyBatches(t *testing.T) {
	f := newFixture()
	for i, name := range []string{"execute_context_1(8)_generation_0(0)", "execute_context_0(0)_generation_0(0)",
		"execute_context_0(0)_generation_0(0)", "execute_context_0(0)_generation_8(8)"} {
		at := int64(1000 * i)
		f.push(0, at, at+900, name).work(0, int64(2*i+1), at+10, 5, "copy")
		if i != 2 {
			f.push(0, at+50, at+800, "layer 0 experts").work(0, int64(2*i+2), at+100, 30, "fused_moe_kernel")
		}
	}
	trace := mustRead(t, Options{}, f.write(t, "dummy.sqlite"))
	var names []string
	for _, k := range trace.StepKinds {
		names = append(names, k.Name)
	}
	if len(trace.StepTimes) != 3 || len(names) != 3 {
		t.Errorf("%d steps of kinds %q", len(trace.StepTimes), names)
	}
}

// The passes of data-parallel ranks for the tokens of others may have no range: on each rank in some steps, on the last
// one until it gets a request. They are the steps of the other ranks all the same.
func TestDummyBatchesWithoutRanges(t *testing.T) {
	paths := inTestdata(t, "vllm/qwen3-normal.rank?.json.gz")
	list := recordings(paths)
	dropped := func(drop func(rank, n int) bool) *Trace {
		return changedAgain(t, paths, list, func(rank int, rec *capture.Recording) {
			n := 0
			rec.Ranges = slices.DeleteFunc(slices.Clone(rec.Ranges), func(r capture.Range) bool {
				name := rec.RangeNames[r.Name]
				if strings.HasPrefix(name, "execute_context") && !strings.Contains(name, "_0(0)_generation_0(0)") {
					n++
					return drop(rank, n-1)
				}
				return false
			})
		})
	}
	want := dropped(func(int, int) bool { return false })
	for name, drop := range map[string]func(rank, n int) bool{
		"in turn":         func(rank, n int) bool { return (rank+n)%4 == 1 },
		"until a request": func(rank, n int) bool { return rank == 3 && n < 3 },
	} {
		have := dropped(drop)
		if len(have.Imbalance) != len(want.Imbalance) || have.Doubt().Code != "" {
			t.Errorf("%s: %d rows, want %d, doubt %q", name, len(have.Imbalance), len(want.Imbalance), have.Doubt().Code)
			continue
		}
		for i, row := range have.Imbalance {
			if by := float64(row.MaxOverMean - want.Imbalance[i].MaxOverMean); math.Abs(by) > 1e-9 {
				t.Errorf("%s: layer %d is off by %v", name, row.Layer, by)
			}
		}
	}
}

// The threads of microbatches launch what belongs to the ranges of the main thread, batches without a request too.
func TestStepsOfOtherThreads(t *testing.T) {
	paths := inTestdata(t, "vllm/qwen3-normal.rank?.json.gz")
	list := recordings(paths)
	names := func(change func(rec *capture.Recording)) (names []string) {
		for _, s := range changedAgain(t, paths, list, func(_ int, rec *capture.Recording) { change(rec) }).StepTimes {
			names = append(names, s.Range)
		}
		return names
	}
	want := names(func(*capture.Recording) {})
	have := names(func(rec *capture.Recording) {
		rec.Launches, rec.Threads = slices.Clone(rec.Launches), append(rec.Threads, rec.Threads[rec.Launches[0].Thread])
		for i := range len(rec.Launches) / 2 {
			rec.Launches[i].Thread = int32(len(rec.Threads) - 1)
		}
	})
	if len(want) == 0 || want[0] == "" || !slices.Equal(have, want) {
		t.Errorf("have %q, want %q", have, want)
	}
}

// An export of two ranks has one list of names: a step without a range moves no name to another step.
func TestNamesOfTwoRanks(t *testing.T) {
	path := inTestdata(t, "vllm/qwen3-normal.rank0.json.gz")[0]
	rec := recordings([]string{path})[0]
	rec.Ranges = slices.DeleteFunc(rec.Ranges, func(r capture.Range) bool {
		return rec.RangeNames[r.Name] == "execute_context_0(0)_generation_1(1)"
	})
	options := Options{Threshold: 0.1, Patterns: require.Value(ranges.NewPatterns())}
	e := require.Value(summarizeRecording(path, rec, options))
	second := *e.Ranks[0]
	second.Rank.Rank, second.events = 1, slices.Clone(second.events)
	for i := range second.events {
		second.events[i].Start += 1000
	}
	e.Export.Ranks, e.Ranks = []int{0, 1}, append(e.Ranks, &second)
	for _, s := range require.Value(reduce([]*exportSummary{e}, options)).StepTimes {
		if s.Batch.Prefill != (s.WallNS > 2e7) {
			t.Errorf("%+v", s)
		}
	}
}
