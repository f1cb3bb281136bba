package nsys

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/nsys/recorded"
	"github.com/moebalance/moebalance/router"
)

// recordedCounts are the same loads in the given layers, experts split evenly.
func recordedCounts(t *testing.T, ranks int, perExpert []int64, layers ...int) Recorded {
	t.Helper()
	layout, err := router.Contiguous(len(perExpert), ranks)
	if err != nil {
		t.Fatal(err)
	}
	r := Recorded{Counts: recorded.Counts{Load: map[int]router.Load{}, Layout: map[int]router.Layout{}}}
	for _, layer := range layers {
		r.Load[layer], r.Layout[layer] = router.Load{PerExpert: slices.Clone(perExpert)}, layout
	}
	return r
}

// The run has 4 experts on 2 ranks in layers 0 and 1; experts 0 (30 ns) and 1
// (10 ns) run on rank 0, experts 2 (10 ns) and 3 (never) on rank 1.
func fourExperts(t *testing.T) string {
	f := newFixture()
	for layer, name := range []string{"layer 0 expert ", "layer 1 expert "} {
		at := int64(1000 * layer)
		f.push(0, at, at+99, name+"0").work(0, at+1, at+10, 30, "gemm")
		f.push(0, at+100, at+199, name+"1").work(0, at+2, at+110, 10, "gemm")
		f.push(1, at, at+99, name+"2").work(1, at+1, at+10, 10, "gemm")
	}
	return f.write(t, "four.sqlite")
}

func TestCountsThatDoNotFitAreRefused(t *testing.T) {
	path := fourExperts(t)
	for _, c := range []struct {
		what     string
		recorded Recorded
		text     string
	}{
		{"fewer experts", recordedCounts(t, 2, []int64{5, 5}, 0, 1),
			"with 2 experts on 2 ranks, expert 1 of layer 0 belongs to rank 1, in the trace it ran on rank 0"},
		{"too few experts on the same owners",
			Recorded{Counts: recorded.Counts{Load: map[int]router.Load{0: {PerExpert: []int64{5, 5}}}}},
			"counts of 2 experts, expert 2 of layer 0 ran on rank 1"},
		{"more experts", recordedCounts(t, 2, make([]int64, 256), 0, 1),
			"with 256 experts on 2 ranks, expert 2 of layer 0 belongs to rank 0, in the trace it ran on rank 1"},
		{"fewer ranks", recordedCounts(t, 1, []int64{1, 1, 1, 1}, 0, 1), "of 1 rank, the trace has rank 1"},
		{"no layer in common", recordedCounts(t, 2, []int64{1, 1, 1, 1}, 3, 4),
			"counts of layers 3, 4, experts run in layers 0, 1"},
		{"layers counted from another one", recordedCounts(t, 2, []int64{1, 1, 1, 1}, 1, 2),
			"counts of layers 1, 2, experts run in layers 0, 1"},
		{"a deeper model", recordedCounts(t, 2, []int64{1, 1, 1, 1}, 0, 1, 2),
			"counts up to layer 2, and the last layer with experts is 1 on every rank"},
	} {
		_, err := Read(context.Background(), []string{path}, Options{Recorded: c.recorded})
		if !errors.Is(err, ErrCounts) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: want %q, have %v", c.what, c.text, err)
		}
	}
}

func TestCountsThatFitInPartAreWarnedOf(t *testing.T) {
	path := fourExperts(t)
	text := func(r Recorded) string {
		var all []string
		for _, w := range mustRead(t, Options{Recorded: r}, path).Warnings {
			if strings.HasPrefix(w.Code, "counts_") {
				all = append(all, fmt.Sprint(w.Code, w.Args))
			}
		}
		return strings.Join(all, "\n")
	}
	if all := text(recordedCounts(t, 2, []int64{3, 1, 1, 0}, 0, 1)); all != "" {
		t.Errorf("the run's own counts: %s", all)
	}
	if all := text(recordedCounts(t, 2, []int64{0, 0, 0, 0}, 5)); all != "counts_layersmap[why:zero]" {
		t.Errorf("no load: %s", all)
	}
	dense := recordedCounts(t, 2, []int64{3, 1, 1, 0}, 0, 1)
	dense.Load[7], dense.Layout[7] = router.NewLoad(4), dense.Layout[0]
	if all := text(dense); all != "" {
		t.Errorf("a recorded layer without load: %s", all)
	}
	all := text(recordedCounts(t, 2, []int64{3, 1, 0, 4}, 0))
	for _, want := range []string{
		"counts_layersmap[layers:[1] why:without]",
		"counts_idlemap[experts:1 layer:0 share:0.5 why:unused]", // 4 of 8 slots are expert 3's
		"counts_idlemap[experts:1 layer:0 why:unloaded]",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
}

// Counts of layers 0 to 2 are refused for two whole ranks of layers 0 and 1, and not
// where the trace can lack a layer of the same model.
func TestATraceMayLackLayers(t *testing.T) {
	whole := func(layers ...int64) *fixture {
		f := newFixture()
		for _, layer := range layers {
			at, name := 1000*layer, fmt.Sprintf("layer %d experts", layer)
			f.push(0, at, at+99, name).work(0, 1+layer, at+10, 30, "gemm")
			f.push(1, at, at+99, name).work(1, 1+layer, at+10, 10, "gemm")
		}
		return f
	}
	three := recordedCounts(t, 2, []int64{1, 1, 1, 1}, 0, 1, 2)
	for _, c := range []struct {
		what     string
		trace    *fixture
		recorded Recorded
		refused  bool
	}{
		{"whole", whole(0, 1), three, true},
		{"a rank is missing", whole(0, 1).sql("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE globalPid = %d", pid(1)),
			three, false},
		{"a pipeline", whole(0, 1).sql("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE globalPid = %d AND start > 1000",
			pid(1)), three, false},
		{"single layers", whole(0, 1).push(0, -9, -8, `layer_wise_benchmarks args {"layer_indices": [0, 1]}`), three,
			false},
		{"a layer between", whole(0, 2), three, false},
		{"ranks not recorded", whole(0, 1), Recorded{Counts: recorded.Counts{Load: three.Load}}, false},
		{"one more of 20", func() *fixture {
			f := newFixture()
			for layer := range int64(19) {
				f.push(0, 100*layer, 100*layer+99, fmt.Sprintf("layer %d experts", layer)).work(0, 1+layer,
					100*layer+10, 30, "gemm")
			}
			return f
		}(), recordedCounts(t, 1, []int64{1, 1}, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19),
			false},
	} {
		_, err := Read(context.Background(), []string{c.trace.write(t, "whole.sqlite")}, Options{Recorded: c.recorded})
		if errors.Is(err, ErrCounts) != c.refused || err != nil && !c.refused {
			t.Errorf("%s: refused %v, have %v", c.what, c.refused, err)
		}
	}
}

// The gate's kernel is made for a number of experts; counts of another are refused,
// unless a second model in the trace has theirs.
func TestCountsForAnotherGate(t *testing.T) {
	for _, c := range []struct {
		names []string
		text  string
	}{
		{[]string{"void vllm::moe::topkGatingSoftmax<(int)8, (int)256, (int)4, (int)16, (int)32, int>(const float *)"},
			"counts of 4 experts, the top-k kernel in the trace is compiled for 256"},
		{[]string{"void topkGatingSigmoid<__nv_bfloat16, 4, 128, 4, 8>(T1 const*)"}, "compiled for 128"},
		{[]string{"void topkGatingSoftmax<float, 1, 4, 4, 4>(T1 const*)"}, ""},
		{[]string{"void topkGatingSoftmax<8, 256, 4, 16>(float const*)",
			"void topkGatingSoftmax<1, 4, 4, 4>(float const*)"}, ""},
		// threads; not the gate
		{[]string{"void moeTopK<(int)256>(const float *)", "mytopkGatingSoftmax<8, 256>()",
			"f<topkGatingSoftmax<8, 256>>()"}, ""},
	} {
		f := newFixture()
		for i, name := range c.names {
			f.push(0, 0, 99, "layer 0 experts").work(0, int64(i+1), int64(10+i), 5, name)
		}
		_, err := Read(context.Background(), []string{f.write(t, "gate.sqlite")},
			Options{Recorded: recordedCounts(t, 1, []int64{1, 1, 1, 1}, 0)})
		if c.text == "" && err != nil || c.text != "" &&
			(!errors.Is(err, ErrCounts) || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%q: want %q, have %v", c.names, c.text, err)
		}
	}
}

// With the counts of the whole run, and the export of one rank, only that rank's
// experts are compared: 30 and 10 ns, so max/mean is 30/20.
func TestExpertsOfAbsentRanksAreNotIdle(t *testing.T) {
	f := newFixture().environment("RANK=0").environment("WORLD_SIZE=2").
		push(0, 0, 99, "layer 0 expert 0").work(0, 1, 10, 30, "gemm").push(0, 100, 199, "layer 0 expert 1").work(0, 2,
		110, 10, "gemm")
	trace := mustRead(t, Options{Recorded: recordedCounts(t, 2, []int64{3, 1, 9, 9}, 0)}, f.write(t, "rank0.sqlite"))
	equal(t, "parts", trace.Imbalance[0].Parts, 2)
	near(t, "max/mean", trace.Imbalance[0].MaxOverMean, 1.5)
	for _, w := range trace.Warnings {
		if strings.HasPrefix(w.Code, "counts_") {
			t.Errorf("have %+v", w)
		}
	}
	trace = mustRead(t, Options{Recorded: recordedCounts(t, 4, []int64{3, 1, 9, 9, 1, 1, 1, 1}, 0)},
		f.write(t, "rank0.sqlite"))
	if !hasWarning(trace.Warnings, "counts_ranks") {
		t.Errorf("counts of 4 ranks for a run of 2: have %v", trace.Warnings)
	}
}

// Counts of a model of 256 experts are refused for a capture of 32, and those of a
// model of 3 layers for one of 2 whose grouped kernels show no experts.
func TestCountsOfAnotherModel(t *testing.T) {
	_, err := Read(context.Background(), []string{filepath.Join(testdata, "gptoss-ep4-loop/normal.sqlite")},
		Options{Recorded: recordedCounts(t, 4, make([]int64, 256), 0, 1, 2)})
	if !errors.Is(err, ErrCounts) {
		t.Errorf("have %v", err)
	}
	grouped, err := filepath.Glob(filepath.Join(testdata, "deepseek-ep4-ranks/normal.rank?.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Read(context.Background(), grouped,
		Options{Recorded: recordedCounts(t, 4, slices.Repeat([]int64{512}, 32), 0, 1, 2)})
	if !errors.Is(err, ErrCounts) {
		t.Errorf("grouped: have %v", err)
	}
}
