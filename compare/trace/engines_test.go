package trace

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/testdata/require"
)

// inTestdata lists captures; of others, in ../shared, the test is skipped where they
// are not there.
func inTestdata(t *testing.T, pattern string) []string {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(testdata, pattern))
	if len(paths) == 0 {
		t.Skip("no " + pattern)
	}
	return paths
}

// changed reads captures, changes their recordings and reduces them to a trace.
func changed(t *testing.T, paths []string, change func(rank int, rec *capture.Recording)) *Trace {
	t.Helper()
	return changedAgain(t, paths, recordings(paths), change)
}

func recordings(paths []string) (list []*capture.Recording) {
	for _, path := range paths {
		rec := require.Value(capture.Read(context.Background(), path, nil))
		list = append(list, rec)
	}
	return list
}

// changedAgain changes copies of recordings, whose slices change must not write to.
func changedAgain(t *testing.T, paths []string, list []*capture.Recording,
	change func(rank int, rec *capture.Recording)) *Trace {
	t.Helper()
	return require.Value(tryChanged(t, paths, list, change))
}

func tryChanged(t *testing.T, paths []string, list []*capture.Recording,
	change func(rank int, rec *capture.Recording)) (*Trace, error) {
	t.Helper()
	options := Options{Threshold: 0.1}
	var err error
	if options.Patterns, err = ranges.NewPatterns(); err != nil {
		t.Fatal(err)
	}
	var exports []*exportSummary
	for i, path := range paths {
		rec := *list[i]
		rec.Kernels = slices.Clone(rec.Kernels) // which the summary uses up
		change(i, &rec)
		e := require.Value(summarizeRecording(path, &rec, options))
		exports = append(exports, e)
	}
	return reduce(exports, options)
}

// Every fifth kernel of one rank is gone with its launch: some of these ways take no
// expert GEMM, so that only the number of kernels tells.
func TestMissingKernelsRaiseADoubt(t *testing.T) {
	paths := inTestdata(t, "hf-qwen3-ep4-nsys/normal.rank?.sqlite")
	for offset := range 5 {
		trace := changed(t, paths, func(rank int, rec *capture.Recording) {
			if rank == 1 {
				i := -1
				rec.Kernels = slices.DeleteFunc(rec.Kernels, func(capture.Kernel) bool { i++; return i%5 == offset })
			}
		})
		if trace.Doubt().Code == "" {
			t.Errorf("offset %d: no doubt", offset)
		}
	}
}

// One rank's capture begins later, or ends earlier, than the others': the steps that all
// have are judged, each with the same step of the others.
func TestStepsThatAllRanksRecorded(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	paths := inTestdata(t, "vllm/qwen3-normal.rank?.json.gz")
	whole := mustRead(t, Options{}, paths...)
	own := func(trace *Trace, rank, step int) (ns []int64) {
		for _, c := range trace.Cells {
			if c.Rank == rank && int(c.Step) == step && c.GEMMNS > 0 {
				ns = append(ns, c.GEMMNS)
			}
		}
		return ns
	}
	for what, from := range map[string]int{"begins later": 2, "ends earlier": 0} {
		trace := changed(t, paths, func(rank int, rec *capture.Recording) {
			if rank == 2 {
				slices.SortFunc(rec.Kernels, func(a, b capture.Kernel) int { return cmp.Compare(a.Start, b.Start) })
				part := len(rec.Kernels) / 13
				rec.Kernels = rec.Kernels[from*part*3/4 : len(rec.Kernels)-(2-from)*part*3/4]
				begin := rec.Launches[rec.Kernels[0].Launch].Start
				rec.Ranges = slices.DeleteFunc(slices.Clone(rec.Ranges),
					func(r capture.Range) bool { return r.End < begin })
			}
		})
		if trace.Doubt().Code != "" || trace.Structure.Layers != 12 ||
			trace.Structure.Steps != whole.Structure.Steps-2 {
			t.Errorf("%s: %v, %+v", what, trace.Doubt(), trace.Structure)
		}
		first := slices.MinFunc(trace.Cells,
			func(a, b Cell) int { return cmp.Compare(uint32(a.Step), uint32(b.Step)) }).Step
		for i, s := range trace.StepTimes {
			if want := whole.StepTimes[from+i].Range; s.Range != want || want == "" {
				t.Errorf("%s: the range of step %d is %q, want %q", what, s.Step, s.Range, want)
			}
		}
		for rank := range 4 {
			for step := range int(whole.Structure.Steps) - 2 {
				if have, want := own(trace, rank, int(first)+step), own(whole, rank, step+from); len(want) != 12 ||
					!slices.Equal(have, want) {
					t.Errorf("%s: rank %d, step %d: GEMMs take %v ns, want %v", what, rank, step, have, want)
				}
			}
		}
	}
}

// Launches that are not recorded of every third kernel change no layer: on a stream, kernels start in order of launch.
func TestLayersWithoutLaunches(t *testing.T) {
	paths := inTestdata(t, "vllm/qwen3-normal.rank?.json.gz")
	list := recordings(paths)
	of := func(every int) []float64 {
		var ratios []float64
		for _, row := range changedAgain(t, paths, list, func(_ int, rec *capture.Recording) {
			rec.Ranges = nil
			for i := 0; every > 0 && i < len(rec.Kernels); i += every {
				rec.Kernels[i].Launch = -1
			}
		}).Imbalance {
			ratios = append(ratios, float64(row.MaxOverMean))
		}
		return ratios
	}
	if want, have := of(0), of(3); len(want) == 0 || !slices.Equal(have, want) {
		t.Errorf("have %v, want %v", have, want)
	}
}
