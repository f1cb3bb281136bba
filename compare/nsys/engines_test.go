package nsys

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys/capture"
	"github.com/moebalance/moebalance/compare/nsys/kernel"
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
	for _, c := range []struct {
		captures    string
		steps       int
		loss        float64 // ms per step, 0 if not worked out
		truth       []float64
		blocks      int
		kinds       int
		explanation string
	}{
		{captures: "hf-qwen3-ep4/normal.rank?.json.gz", steps: 3, blocks: 9, kinds: 1, loss: 3.97, truth: []float64{1.654, 1.271, 1.679}},
		{captures: "hf-qwen3-ep4/perfect.rank?.json.gz", steps: 3, blocks: 9, kinds: 1, loss: 0.12, truth: []float64{1.017, 1.017, 1.018}},
		{captures: "hf-qwen3-ep4-nsys/normal.rank?.sqlite", steps: 3, blocks: 9, kinds: 1, loss: 4.12, truth: []float64{1.657, 1.314, 1.678}},
		{captures: "hf-qwen3-ep4-nsys/perfect.rank?.sqlite", steps: 3, blocks: 9, kinds: 1, truth: []float64{1.020, 1.023, 1.025}},
		{captures: "hf-qwen3-serving/rank0.json.gz", steps: 25, blocks: 125, kinds: 2, truth: []float64{1, 1, 1, 1, 1}},
		{captures: "vllm/qwen3-normal.rank?.json.gz", steps: 13, blocks: 156, kinds: 2, truth: []float64{1.134, 1.082, 1.224, 1.146, 1.09, 1.19, 1.197, 1.078, 1.2, 1.163, 1.098, 1.198}},
	} {
		t.Run(c.captures, func(t *testing.T) {
			trace := mustRead(t, Options{Threshold: 0.1}, inTestdata(t, c.captures)...)
			if trace.Doubt() != "" {
				t.Error(trace.Doubt())
			}
			s := trace.Structure
			if s == nil || s.Layers != len(c.truth) || s.Steps != c.steps || s.Blocks != c.blocks || s.Share < 0.9 {
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

// Prefill and decode are not averaged: the rows are of the steps of one kind.
func TestStepsOfOneKindCount(t *testing.T) {
	trace := mustRead(t, Options{Threshold: 0.1}, inTestdata(t, "vllm/qwen3-normal.rank?.json.gz")...)
	times := trace.Times(nil)
	equal(t, "counted", fmt.Sprint(times.StepsOf(imbalance.Counts)), "[1 3 4 5 6]")
	equal(t, "of another kind", fmt.Sprint(times.StepsOf(imbalance.OtherKind)), "[2 7 8 9 10 11 12 13]")
	if !hasWarning(trace.Warnings, "other_kind") {
		t.Error("not said")
	}
}

// recordings reads captures, changes them and reduces them to a trace.
func changed(t *testing.T, paths []string, change func(rank int, rec *capture.Recording)) *Trace {
	t.Helper()
	options := Options{Threshold: 0.1}
	var err error
	if options.Patterns, err = NewPatterns(); err != nil {
		t.Fatal(err)
	}
	var exports []*exportSummary
	for i, path := range paths {
		rec, err := capture.Read(context.Background(), path, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		change(i, rec)
		e, err := summarizeRecording(path, rec, options)
		if err != nil {
			t.Fatal(err)
		}
		exports = append(exports, e)
	}
	trace, err := reduce(exports, options)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// Without their ranges, captures give the layers that the ranges name for 99 % of the
// expert GEMM time, or say that layers are unknown and number the blocks.
func TestStrippedOfRanges(t *testing.T) {
	for pattern, blocks := range map[string]int{
		"deepseek-ep4-ranks/normal.rank?.sqlite":  8,
		"deepseek-ep4-ranks/perfect.rank?.sqlite": 8,
		"gptoss-graph/node-normal.sqlite":         12,
		"torch/grouped-normal.rank?.json.gz":      6,
		"torch/grouped-perfect.rank?.json.gz":     6,
		"gptoss-ep4-loop/normal.sqlite":           0, // plain GEMMs: nothing says which are of experts
		"gptoss-ep4-ranks/normal.rank?.sqlite":    0,
		"torch/loop-normal.rank?.json.gz":         0,
		"vllm/qwen3-normal.rank?.json.gz":         156, // execute_… gave its steps
		"hf-qwen3-ep4/normal.rank?.json.gz":       9,
		"hf-qwen3-ep4-nsys/normal.rank?.sqlite":   9,
	} {
		t.Run(pattern, func(t *testing.T) {
			paths := inTestdata(t, pattern)
			with := mustRead(t, Options{}, paths...)
			without := changed(t, paths, func(_ int, rec *capture.Recording) { rec.Ranges = nil })
			s := without.Structure
			if s == nil {
				if blocks > 0 {
					t.Error("no expert block was found")
				}
				return
			}
			equal(t, "blocks", s.Blocks, blocks)
			named := 0
			for _, c := range with.Cells {
				named = max(named, int(c.Layer)+1)
			}
			if s.Layers == 0 {
				if s.Unknown == "" || strings.HasPrefix(pattern, "hf") || strings.HasPrefix(pattern, "vllm") {
					t.Errorf("layers are unknown: %q", s.Unknown)
				}
				return
			}
			equal(t, "layers", s.Layers, named)
			was, _ := gemmBalance(with)
			is, _ := gemmBalance(without)
			for layer := range was {
				if math.Abs(was[layer]-is[layer]) > 0.001 {
					t.Errorf("layer %d: max/mean %.4f without ranges, %.4f with", layer, is[layer], was[layer])
				}
			}
		})
	}
}

// Kernels of one rank are lost, in many ways: the flags stay what they are, or the
// trace says that they are uncertain. Where the launches are lost too, only the
// number of kernels per layer can tell.
func TestLostKernelsNeverMoveAFlagSilently(t *testing.T) {
	flags := func(trace *Trace) (list []string) {
		for _, r := range trace.Imbalance {
			list = append(list, fmt.Sprint(r.Layer, r.Level, r.Flagged))
		}
		return list
	}
	for _, pattern := range []string{"deepseek-ep4-ranks/normal.rank?.sqlite", "deepseek-ep4-ranks/perfect.rank?.sqlite", "hf-qwen3-ep4-nsys/perfect.rank?.sqlite", "vllm/qwen3-normal.rank?.json.gz"} {
		paths := inTestdata(t, pattern)
		want := flags(mustRead(t, Options{Threshold: 0.1}, paths...))
		shares := []float64{0.3}
		if strings.HasPrefix(pattern, "deepseek") {
			shares = []float64{0.15, 0.3}
		}
		for _, share := range shares {
			for way, lost := range map[string]func(i, n int, gemm bool) bool{
				"middle":     func(i, n int, _ bool) bool { return i > n/2 && i < n/2+int(share*float64(n)) },
				"end":        func(i, n int, _ bool) bool { return i >= n-int(share*float64(n)) },
				"start":      func(i, n int, _ bool) bool { return i < int(share*float64(n)) },
				"spread":     func(i, n int, _ bool) bool { return i*2654435761%1000 < int(share*1000) },
				"GEMM only":  func(i, n int, gemm bool) bool { return gemm && i*2654435761%1000 < int(share*1000) },
				"GEMM late":  func(i, n int, gemm bool) bool { return gemm && i >= n-int(share*float64(n)) },
				"GEMM early": func(i, n int, gemm bool) bool { return gemm && i < int(share*float64(n)) },
			} {
				for _, launched := range []bool{true, false} {
					trace := changed(t, paths, func(rank int, rec *capture.Recording) {
						if rank != 1 {
							return
						}
						classes := kernel.Classes(rec.KernelNames, nil)
						all := rec.Kernels
						rec.Kernels = nil
						for i, k := range all {
							if !lost(i, len(all), classes[k.Name].GEMM) {
								rec.Kernels = append(rec.Kernels, k)
							} else if launched {
								rec.LostKernels++
							}
						}
					})
					if have := flags(trace); trace.Doubt() == "" && !slices.Equal(have, want) {
						t.Errorf("%s, %s, %.0f %%, launches recorded %t: %v, want %v or a doubt", pattern, way, 100*share, launched, have, want)
					}
				}
			}
		}
	}
}

// Every fifth kernel of one rank is gone with its launch: some of these ways take no
// expert GEMM, so that only the number of kernels tells.
func TestMissingKernelsRaiseADoubt(t *testing.T) {
	paths := inTestdata(t, "hf-qwen3-ep4-nsys/normal.rank?.sqlite")
	if doubt := mustRead(t, Options{}, paths...).Doubt(); doubt != "" {
		t.Errorf("a whole capture is doubted: %s", doubt)
	}
	for offset := range 5 {
		trace := changed(t, paths, func(rank int, rec *capture.Recording) {
			if rank == 1 {
				i := -1
				rec.Kernels = slices.DeleteFunc(rec.Kernels, func(capture.Kernel) bool { i++; return i%5 == offset })
			}
		})
		if trace.Doubt() == "" {
			t.Errorf("offset %d: no doubt", offset)
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
	if collective < 0.99*exchange || // all but the layout of dispatch
		math.Abs(gemm-grouped) > 0.001*gpu {
		t.Errorf("collectives take %.1f %%, expert GEMMs %.1f %%", 100*collective/gpu, 100*gemm/gpu)
	}
	if s := trace.Structure; s == nil || s.Layers != 0 || !strings.Contains(s.Unknown, "backward") {
		t.Errorf("have %+v", s)
	}
}

// Ranks of two runs, or of two models, are not judged as one.
func TestRanksOfDifferentRuns(t *testing.T) {
	normal, perfect := inTestdata(t, "hf-qwen3-ep4-nsys/normal.rank?.sqlite"), inTestdata(t, "hf-qwen3-ep4-nsys/perfect.rank?.sqlite")
	other := inTestdata(t, "deepseek-ep4-ranks/normal.rank?.sqlite")
	for _, paths := range [][]string{{normal[0], normal[1], perfect[2], perfect[3]}, {normal[0], other[1]}} {
		if trace := mustRead(t, Options{}, paths...); trace.Doubt() == "" {
			t.Errorf("%v: no doubt in %v", paths, trace.Warnings)
		}
	}
}
