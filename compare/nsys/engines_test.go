package nsys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/router"
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
			if s == nil || int(s.Layers) != len(c.truth) || int(s.Steps) != c.steps || s.Blocks != c.blocks || s.Share < 0.9 {
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
			for _, l := range trace.Stragglers {
				loss += float64(l.GEMMLossNS) / 1e6
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

// agreement is the share of the expert GEMM time that two traces place in the same step
// and layer of the same rank. Steps are numbered by their order: ranges may name some in
// which nothing runs.
func agreement(a, b *Trace) float64 {
	type place struct {
		rank, step int
		layer      router.OptInt
	}
	times := func(t *Trace) (ns map[place]int64, all int64) {
		order := map[router.OptInt]int{}
		for _, c := range t.Cells {
			if c.GEMMNS > 0 {
				order[c.Step] = 0
			}
		}
		for i, step := range slices.Sorted(maps.Keys(order)) {
			order[step] = i
		}
		ns = map[place]int64{}
		for _, c := range t.Cells {
			if c.GEMMNS > 0 {
				ns[place{c.Rank, order[c.Step], c.Layer}] += c.GEMMNS
				all += c.GEMMNS
			}
		}
		return ns, all
	}
	have, all := times(a)
	other, _ := times(b)
	var same int64
	for p, ns := range other {
		same += min(ns, have[p])
	}
	return float64(same) / float64(all)
}

// Without their ranges, captures give the steps and layers that the ranges name for 99 %
// of the expert GEMM time, or say that layers are unknown and number the blocks; where
// the experts are plain GEMMs, they say that none is recognized.
func TestStrippedOfRanges(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	for pattern, blocks := range map[string]int{
		"deepseek-ep4-ranks/normal.rank?.sqlite":  8,
		"deepseek-ep4-ranks/perfect.rank?.sqlite": 8,
		"gptoss-graph/node-normal.sqlite":         12,
		"gptoss-graph/graph-normal.sqlite":        0, // recorded as a whole
		"torch/grouped-normal.rank?.json.gz":      6,
		"torch/grouped-perfect.rank?.json.gz":     6,
		"gptoss-ep4-loop/normal.sqlite":           0, // plain GEMMs: nothing says which are of experts
		"gptoss-ep4-loop/perfect.sqlite":          0,
		"gptoss-ep4-ranks/normal.rank?.sqlite":    0,
		"gptoss-ep4-ranks/perfect.rank?.sqlite":   0,
		"torch/loop-normal.rank?.json.gz":         0,
		"vllm/qwen3-normal.rank?.json.gz":         156, // execute_… gave its steps
		"hf-qwen3-ep4/normal.rank?.json.gz":       9,
		"hf-qwen3-ep4/perfect.rank?.json.gz":      9,
		"hf-qwen3-ep4-nsys/normal.rank?.sqlite":   9,
		"hf-qwen3-ep4-nsys/perfect.rank?.sqlite":  9,
		"hf-qwen3-serving/rank0.json.gz":          125,
	} {
		t.Run(pattern, func(t *testing.T) {
			paths := inTestdata(t, pattern)
			with := mustRead(t, Options{}, paths...)
			without := changed(t, paths, func(_ int, rec *capture.Recording) { rec.Ranges = nil })
			s := without.Structure
			if s == nil {
				if blocks > 0 || without.Doubt().Code == "" {
					t.Errorf("no expert block was found, doubt: %v", without.Doubt())
				}
				return
			}
			equal(t, "blocks", s.Blocks, blocks)
			if s.Layers == 0 {
				if s.Unknown == "" || strings.HasPrefix(pattern, "hf") || strings.HasPrefix(pattern, "vllm") {
					t.Errorf("layers are unknown: %q", s.Unknown)
				}
				return
			}
			named := 0
			for _, c := range with.Cells {
				named = max(named, int(c.Layer)+1)
			}
			equal(t, "layers", int(s.Layers), named)
			if share := agreement(with, without); share < 0.99 {
				t.Errorf("%.1f %% of the expert GEMM time is in the step and layer that ranges name", 100*share)
			}
		})
	}
}

// deepened repeats layers of a recording without ranges: block after block, the kernels
// from the end of one expert block to that of the next are run again where the second
// is not the first of its step. Launches and times are new, what one graph launch
// replayed stays together. In every other copy the attention kernels have another name
// where alternate is set.
func deepened(rec *capture.Recording, layers, want int, alternate bool) {
	classes := kernel.Classes(rec.KernelNames, nil)
	order := make([]int, len(rec.Kernels))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		a, b := rec.Kernels[x], rec.Kernels[y]
		return cmp.Or(cmp.Compare(rec.Launches[a.Launch].Start, rec.Launches[b.Launch].Start),
			cmp.Compare(a.Start, b.Start))
	})
	old := *rec
	rec.Kernels, rec.Launches, rec.Ranges, rec.GraphNodeIDs, rec.GraphNodes = nil, nil, nil, nil, nil
	sliding := map[int32]int32{} // names
	at, last := int64(0), int32(-1)
	run := func(i int, odd bool) {
		k := old.Kernels[i]
		if k.Launch != last {
			l := old.Launches[k.Launch]
			l.Start, l.End, last = at, at+1, k.Launch
			rec.Launches = append(rec.Launches, l)
		}
		if odd && classes[k.Name].Phase == PhaseAttention {
			if sliding[k.Name] == 0 {
				sliding[k.Name] = int32(len(rec.KernelNames))
				rec.KernelNames = append(rec.KernelNames, rec.KernelNames[k.Name]+"_sliding")
			}
			k.Name = sliding[k.Name]
		}
		k.Start, k.End, k.Launch, k.GraphNode = at, at+k.End-k.Start, int32(len(rec.Launches)-1), 0
		at = k.End + 1
		rec.Kernels = append(rec.Kernels, k)
	}
	gemms, from := 0, 0
	for n, i := range order {
		if run(i, false); !classes[old.Kernels[i].Name].GEMM {
			continue
		}
		if gemms++; gemms%2 == 0 {
			if block := gemms/2 - 1; block%layers == 1 {
				for copied := range want - layers {
					last = -1 // a launch of its own, also where a graph was replayed
					for _, j := range order[from : n+1] {
						run(j, alternate && copied%2 == 0)
					}
				}
			}
			from = n + 1
		}
	}
}

// Models have up to 94 MoE layers, the captures 3 to 12.
func TestDeepModels(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	for _, c := range []struct {
		captures      string
		layers, steps int
		want          []int
		alternate     bool
	}{
		{"hf-qwen3-ep4-nsys/normal.rank?.sqlite", 3, 3, []int{36, 94}, false},
		{"hf-qwen3-ep4-nsys/perfect.rank?.sqlite", 3, 3, []int{48}, true},
		{"hf-qwen3-ep4/normal.rank?.json.gz", 3, 3, []int{58}, false},
		{"hf-qwen3-ep4/normal.rank?.json.gz", 3, 3, []int{36}, true},
		{"hf-qwen3-serving/rank0.json.gz", 5, 25, []int{47, 94}, false},
		{"vllm/qwen3-normal.rank?.json.gz", 12, 13, []int{36, 94}, true},
	} {
		paths := inTestdata(t, c.captures)
		truth, _ := gemmBalance(mustRead(t, Options{}, paths...))
		for _, want := range c.want {
			trace := changed(t, paths,
				func(_ int, rec *capture.Recording) { deepened(rec, c.layers, want, c.alternate) })
			s := trace.Structure
			if s == nil || int(s.Layers) != want || int(s.Steps) != c.steps {
				t.Errorf("%s with %d layers: have %+v", c.captures, want, s)
				continue
			}
			ratios, _ := gemmBalance(trace)
			for layer := range ratios {
				of := max(min(layer, 1), layer-want+c.layers)
				if math.Abs(ratios[layer]-truth[of]) > 1e-9 {
					t.Errorf("%s with %d layers: max/mean of layer %d is %.4f, and %.4f before", c.captures, want,
						layer, ratios[layer], truth[of])
				}
			}
		}
	}
}

// Ranges that name layers and no steps give the steps by the order of the layers: the
// same as the ranges that name steps.
func TestStepsFromTheOrderOfLayers(t *testing.T) {
	for pattern, steps := range map[string]int{
		"deepseek-ep4-ranks/normal.rank?.sqlite": 4,
		"gptoss-ep4-ranks/normal.rank?.sqlite":   3,
		"torch/loop-normal.rank?.json.gz":        3,
		"gptoss-graph/node-normal.sqlite":        4,
	} {
		paths := inTestdata(t, pattern)
		with := mustRead(t, Options{Threshold: 0.1}, paths...)
		without := func(cut int) *Trace {
			return changed(t, paths, func(rank int, rec *capture.Recording) {
				rec.RangeNames = slices.Clone(rec.RangeNames)
				for i, name := range rec.RangeNames {
					if strings.Contains(name, "forward_step") || strings.Contains(name, "ProfilerStep") ||
						strings.HasPrefix(name, "step") {
						rec.RangeNames[i] = "work"
					}
				}
				if rank == 1 {
					rec.Kernels = rec.Kernels[:len(rec.Kernels)-cut]
				}
			})
		}
		trace := without(0)
		have, want := trace.Times(nil), with.Times(nil)
		if len(have.Steps) != steps || len(want.Steps) != steps || !hasWarning(trace.Warnings, "inferred_steps") {
			t.Errorf("%s: %d steps, with ranges %d, want %d; %v", pattern, len(have.Steps), len(want.Steps), steps,
				trace.Warnings)
			continue
		}
		for i, row := range trace.Imbalance {
			if is, was := fmt.Sprint(row), fmt.Sprint(with.Imbalance[i]); is != was {
				t.Errorf("%s: %s, with ranges %s", pattern, is, was)
			}
		}
		if len(paths) == 4 { // a rank that ended two steps early
			if lost := without(int(mustRead(t, Options{}, paths[1]).Exports[0].Kernels / 2)); lost.Doubt().Code == "" {
				t.Errorf("%s: a rank that ended early is not doubted", pattern)
			}
		}
	}
}

// lostAt says where a kernel stands among those of its rank: its number, the expert
// GEMMs before it, and what it is.
type lostAt struct {
	i, n, gemms, allGEMMs int
	gemm, collective      bool
}

// waysToLose are the kernels that one rank lacks, as a share of its kernels or all of
// a kind in one place.
func waysToLose(share float64) map[string]func(lostAt) bool {
	part := func(i, n int) bool { return i < int(share*float64(n)) }
	spread := func(i int) bool { return i*2654435761%1000 < int(share*1000) }
	return map[string]func(lostAt) bool{
		"middle":                 func(l lostAt) bool { return l.i > l.n/2 && part(l.i-l.n/2, l.n) },
		"end":                    func(l lostAt) bool { return part(l.n-1-l.i, l.n) },
		"start":                  func(l lostAt) bool { return part(l.i, l.n) },
		"spread":                 func(l lostAt) bool { return spread(l.i) },
		"GEMM only":              func(l lostAt) bool { return l.gemm && spread(l.i) },
		"GEMM late":              func(l lostAt) bool { return l.gemm && part(l.n-1-l.i, l.n) },
		"GEMM early":             func(l lostAt) bool { return l.gemm && part(l.i, l.n) },
		"one layer":              func(l lostAt) bool { return l.gemms*8/l.allGEMMs%2 == 0 },
		"one block":              func(l lostAt) bool { return l.gemms*8/l.allGEMMs == 2 },
		"one step":               func(l lostAt) bool { return l.gemms >= l.allGEMMs/4 && l.gemms < l.allGEMMs/2 },
		"one GEMM of each layer": func(l lostAt) bool { return l.gemm && l.gemms%2 == 1 },
		"collectives":            func(l lostAt) bool { return l.collective },
		"all but GEMMs":          func(l lostAt) bool { return !l.gemm && spread(l.i) },
	}
}

// lose takes kernels of a recording away, with their launches or without. Where GEMMs
// of experts are plain ones, all GEMMs are taken for them.
func lose(rec *capture.Recording, lost func(lostAt) bool, launched bool) {
	classes := kernel.Classes(rec.KernelNames, nil)
	plain := !slices.ContainsFunc(classes, func(c kernel.Class) bool { return c.GEMM })
	at := lostAt{n: len(rec.Kernels)}
	gemm := func(k capture.Kernel) bool {
		return classes[k.Name].GEMM || plain && (classes[k.Name].Library == "cuBLAS" ||
			classes[k.Name].Library == "CUTLASS")
	}
	for _, k := range rec.Kernels {
		if gemm(k) {
			at.allGEMMs++
		}
	}
	all := rec.Kernels
	rec.Kernels = nil
	for i, k := range all {
		at.i, at.gemm, at.collective = i, gemm(k), classes[k.Name].Collective
		if !lost(at) {
			rec.Kernels = append(rec.Kernels, k)
		} else if launched {
			rec.LostKernels++
		}
		if at.gemm {
			at.gemms++
		}
	}
}

// Kernels of one rank are lost, in many ways: the flags stay what they are, or the
// trace says that they are uncertain. Where the launches are lost too, only the
// number of kernels can tell.
func TestLostKernelsNeverMoveAFlagSilently(t *testing.T) {
	if testing.Short() {
		t.Skip("reduces some 360 traces, one after the other")
	}
	flags := func(trace *Trace) (list []string) {
		for _, r := range trace.Imbalance {
			list = append(list, fmt.Sprint(r.Layer, r.Level, r.Flagged))
		}
		return list
	}
	for _, c := range []struct {
		captures string
		stripped bool
		shares   []float64
	}{
		{"deepseek-ep4-ranks/normal.rank?.sqlite", false, []float64{0.15, 0.2, 0.3}},
		{"deepseek-ep4-ranks/normal.rank?.sqlite", true, []float64{0.15, 0.3}},
		{"deepseek-ep4-ranks/perfect.rank?.sqlite", false, []float64{0.15, 0.3}},
		{"gptoss-ep4-ranks/normal.rank?.sqlite", false, []float64{0.15, 0.3}},
		{"hf-qwen3-ep4-nsys/normal.rank?.sqlite", false, []float64{0.15, 0.3}},
		{"hf-qwen3-ep4-nsys/perfect.rank?.sqlite", false, []float64{0.3}},
		{"hf-qwen3-ep4/normal.rank?.json.gz", false, []float64{0.2}},
		{"vllm/qwen3-normal.rank?.json.gz", false, []float64{0.3}},
	} {
		paths := inTestdata(t, c.captures)
		list := recordings(t, paths)
		strip := func(_ int, rec *capture.Recording) {
			if c.stripped {
				rec.Ranges = nil
			}
		}
		want := flags(changedAgain(t, paths, list, strip))
		for _, share := range c.shares {
			for way, lost := range waysToLose(share) {
				for _, launched := range []bool{true, false} {
					trace := changedAgain(t, paths, list, func(rank int, rec *capture.Recording) {
						if strip(rank, rec); rank == 1 {
							lose(rec, lost, launched)
						}
					})
					if have := flags(trace); trace.Doubt().Code == "" && !slices.Equal(have, want) {
						t.Errorf("%s, stripped %t, %s, %.0f %%, launches recorded %t: %v, want %v or a doubt",
							c.captures, c.stripped, way, 100*share, launched, have, want)
					}
				}
			}
		}
	}
}

// Plain GEMMs of single experts are gone with their launches: only the kernels per
// expert tell.
func TestFewKernelsPerExpert(t *testing.T) {
	for _, pattern := range []string{"gptoss-ep4-ranks/normal.rank?.sqlite", "gptoss-ep4-ranks/perfect.rank?.sqlite",
		"torch/loop-normal.rank?.json.gz"} {
		paths := inTestdata(t, pattern)
		if doubt := mustRead(t, Options{}, paths...).Doubt(); doubt.Code != "" {
			t.Errorf("%s: a whole capture is doubted: %v", pattern, doubt)
		}
	}
	paths := inTestdata(t, "gptoss-ep4-ranks/normal.rank?.sqlite")
	for _, mod := range []int{4, 5, 8, 12} {
		trace := changed(t, paths, func(rank int, rec *capture.Recording) {
			if rank == 3 {
				lose(rec, func(l lostAt) bool { return l.gemm && l.gemms%mod == 0 }, false)
			}
		})
		if doubt := trace.Doubt(); doubt.Code != "few_kernels" || doubt.Args["why"] != "expert" {
			t.Errorf("one in %d GEMMs lost: doubt %v", mod, trace.Doubt())
		}
	}
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

// A public training trace: what it shows, and what cannot be said of it.
func TestTrainingTraceOfDeepSeek(t *testing.T) {
	path := filepath.Join("..", "..", "..", "shared", "captures", "third-party", "deepseek-train-ep64-rank0.json.gz")
	if _, err := os.Stat(path); err != nil {
		t.Skip(err)
	}
	trace := mustRead(t, Options{}, path)
	var gpu, exchange, grouped float64
	for _, k := range trace.Kernels {
		gpu += float64(k.TotalNS)
		if strings.Contains(k.Name, "dpsk::ep::") {
			exchange += float64(k.TotalNS)
		}
		if strings.Contains(k.Name, "m_grouped") {
			grouped += float64(k.TotalNS)
		}
	}
	equal(t, "GPU time, ms", math.Round(gpu/1e5)/10, 244.0)
	equal(t, "exchange, %", math.Round(1000*exchange/gpu)/10, 46.5)
	equal(t, "grouped GEMM, %", math.Round(1000*grouped/gpu)/10, 9.4)
	var collective, gemm float64
	for _, c := range trace.Cells {
		collective += float64(c.CollectiveNS)
		gemm += float64(c.GEMMNS)
	}
	// Of the 22.926 ms of grouped GEMM, 11.591 are launched inside mlp(F) and 11.335 inside
	// mlp(B) (by correlation, with Python). kernels[] and phases[] call all of them experts.
	if collective < 0.99*exchange || // all but the layout of dispatch
		gemm != grouped {
		t.Errorf("collectives take %.1f %%, expert GEMMs %.1f %%", 100*collective/gpu, 100*gemm/gpu)
	}
	if s := trace.Structure; s == nil || s.Layers != 0 || !strings.Contains(s.Unknown, "backward") {
		t.Errorf("have %+v", s)
	}
	asJSON(t, trace)
}

// Ranks of two runs seconds apart are not judged as one; those of two days are refused.
func TestRanksOfDifferentRuns(t *testing.T) {
	normal, perfect := inTestdata(t, "hf-qwen3-ep4-nsys/normal.rank?.sqlite"),
		inTestdata(t, "hf-qwen3-ep4-nsys/perfect.rank?.sqlite")
	paths := []string{normal[0], normal[1], perfect[2], perfect[3]}
	if trace := mustRead(t, Options{}, paths...); trace.Doubt().Code == "" {
		t.Errorf("%v: no doubt in %v", paths, trace.Warnings)
	}
	other := inTestdata(t, "deepseek-ep4-ranks/normal.rank?.sqlite")
	if _, err := Read(context.Background(), []string{normal[0], other[1]}, Options{}); !errors.Is(err, ErrNotOneRun) {
		t.Errorf("two models: have %v", err)
	}
	vllm := inTestdata(t, "vllm/qwen3-normal.rank?.json.gz")
	_, err := tryChanged(t, vllm, recordings(t, vllm), func(rank int, rec *capture.Recording) {
		for i, name := range rec.KernelNames {
			if rank == 2 {
				rec.KernelNames[i] = strings.Replace(name, "topkGating<8, 128,", "topkGating<8, 256,", 1)
			}
		}
	})
	if !errors.Is(err, ErrNotOneRun) ||
		!strings.Contains(err.Error(), "rank 0 with a gate of 128 experts and rank 2 with one of 256") {
		t.Errorf("two models of one engine by their gates: %v", err)
	}
	linear := changed(t, normal, func(rank int, rec *capture.Recording) {
		for i, name := range rec.KernelNames {
			if rank == 2 && kernel.Classify(name).Phase == PhaseAttention {
				rec.KernelNames[i] = "fused_recurrent_gated_delta_rule_fwd_kernel"
			}
		}
	})
	if doubt := linear.Doubt(); doubt.Args["why"] != "models" || doubt.Args["rank"] != 2.0 ||
		!strings.Contains(fmt.Sprint(doubt.Args["libraries"]), "flash-linear-attention") {
		t.Errorf("two models of one engine: %v", doubt)
	}
}

// The LM head ends a step: the first one lacked 9 of its kernels (0.96 ms), which stood
// outside all steps at the end.
func TestInferredStepsAreWhole(t *testing.T) {
	trace := mustRead(t, Options{}, inTestdata(t, "hf-qwen3-ep4/normal.rank?.json.gz")...)
	kernels := map[int]int64{}
	for _, c := range trace.Cells {
		if c.Rank == 0 {
			kernels[int(c.Step)] += c.Instances
		}
	}
	if len(kernels) != 3 || kernels[0] != kernels[1] || kernels[1] != kernels[2] {
		t.Errorf("kernels of rank 0 by step: %v", kernels)
	}
}
