package trace

import (
	"cmp"
	"context"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
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

// gemmBalance is, by layer, the mean over all complete steps of the max/mean over ranks
// of the time of expert GEMMs.
func gemmBalance(trace *Trace) (ratios []float64, steps int) {
	type key struct{ layer, step int }
	sum := map[key]map[int]float64{}
	most, seen := 0, map[int]bool{}
	for _, c := range trace.Cells {
		if c.GEMMNS > 0 && c.Layer.Defined() {
			k := key{int(c.Layer), int(c.Step)}
			if sum[k] == nil {
				sum[k] = map[int]float64{}
			}
			sum[k][c.Rank] += float64(c.GEMMNS)
			most = max(most, k.layer+1)
			seen[k.step] = true
		}
	}
	ratios = make([]float64, most)
	for k, ranks := range sum {
		var largest, all float64
		for _, ns := range ranks {
			largest, all = max(largest, ns), all+ns
		}
		ratios[k.layer] += largest / all * float64(len(ranks)) / float64(len(seen))
	}
	return ratios, len(seen)
}

// What engines ran, worked out outside the program from the expert GEMMs in order of
// launch: no range names anything in these captures.
func TestEnginesWithoutRanges(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	for _, c := range []struct {
		captures    string
		steps       int
		loss        float64 // ms per step, 0 if not worked out
		truth       []float64
		blocks      int
		kinds       int
		explanation string
	}{
		{captures: "hf-qwen3-ep4/normal.rank?.json.gz", steps: 3, blocks: 9, kinds: 1, loss: 3.97,
			truth: []float64{1.654, 1.271, 1.679}},
		{captures: "hf-qwen3-ep4/perfect.rank?.json.gz", steps: 3, blocks: 9, kinds: 1, loss: 0.12,
			truth: []float64{1.017, 1.017, 1.018}},
		{captures: "hf-qwen3-ep4-nsys/normal.rank?.sqlite", steps: 3, blocks: 9, kinds: 1, loss: 4.12,
			truth: []float64{1.657, 1.314, 1.678}},
		{captures: "hf-qwen3-ep4-nsys/perfect.rank?.sqlite", steps: 3, blocks: 9, kinds: 1,
			truth: []float64{1.020, 1.023, 1.025}},
		{captures: "hf-qwen3-serving/rank0.json.gz", steps: 25, blocks: 125, kinds: 4, truth: []float64{1, 1, 1, 1, 1}},
		{captures: "vllm/qwen3-normal.rank?.json.gz", steps: 13, blocks: 156, kinds: 5,
			truth: []float64{1.134, 1.082, 1.224, 1.146, 1.09, 1.19, 1.197, 1.078, 1.2, 1.163, 1.098, 1.198}},
	} {
		t.Run(c.captures, func(t *testing.T) {
			trace := mustRead(t, Options{Threshold: 0.1}, inTestdata(t, c.captures)...)
			if trace.Doubt().Code != "" {
				t.Error(trace.Doubt())
			}
			s := trace.Structure
			if s == nil || int(s.Layers) != len(c.truth) || int(s.Steps) != c.steps || s.Blocks != c.blocks {
				t.Fatalf("have %+v, want %d steps of %d layers", s, c.steps, len(c.truth))
			}
			ratios, steps := gemmBalance(trace)
			equal(t, "steps", steps, c.steps)
			for layer, want := range c.truth {
				if math.Abs(ratios[layer]-want) > 0.0006 {
					t.Errorf("layer %d: max/mean %.4f, want %.3f", layer, ratios[layer], want)
				}
			}
			equal(t, "kinds of steps", trace.Times(nil).Kinds, c.kinds)
			for _, row := range trace.Imbalance {
				if row.Basis != imbalance.Inferred || row.Of != imbalance.OfGEMM {
					t.Errorf("have %+v", row)
				}
			}
			loss := 0.0
			for _, row := range trace.Imbalance {
				loss += float64(row.Imbalance*row.MeanNS) / 1e6
			}
			if c.loss > 0 && math.Abs(loss-c.loss) > 0.006 {
				t.Errorf("loss %.3f ms per step, want %.2f", loss, c.loss)
			}
		})
	}
}

// changed reads captures, changes their recordings and reduces them to a trace.
func changed(t *testing.T, paths []string, change func(rank int, rec *capture.Recording)) *Trace {
	t.Helper()
	return changedAgain(t, paths, recordings(t, paths), change)
}

func recordings(t *testing.T, paths []string) (list []*capture.Recording) {
	t.Helper()
	for _, path := range paths {
		rec, err := capture.Read(context.Background(), path, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, rec)
	}
	return list
}

// changedAgain changes copies of recordings, whose slices change must not write to.
func changedAgain(t *testing.T, paths []string, list []*capture.Recording,
	change func(rank int, rec *capture.Recording)) *Trace {
	t.Helper()
	trace, err := tryChanged(t, paths, list, change)
	if err != nil {
		t.Fatal(err)
	}
	return trace
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
		e, err := summarizeRecording(path, &rec, options)
		if err != nil {
			t.Fatal(err)
		}
		exports = append(exports, e)
	}
	return reduce(exports, options)
}

// Every fifth kernel of one rank is gone with its launch: some of these ways take no
// expert GEMM, so that only the number of kernels tells.
func TestMissingKernelsRaiseADoubt(t *testing.T) {
	paths := inTestdata(t, "hf-qwen3-ep4-nsys/normal.rank?.sqlite")
	if doubt := mustRead(t, Options{}, paths...).Doubt(); doubt.Code != "" {
		t.Errorf("a whole capture is doubted: %v", doubt)
	}
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
