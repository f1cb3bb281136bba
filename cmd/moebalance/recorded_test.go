package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/testdata/require"
)

// The null of a named model knows its groups: trace gives the numbers that counts
// gives, which are higher than without groups.
func TestTraceJudgesLoadAsCountsDoes(t *testing.T) {
	const statistics = fixtures + "deepseek-ep4-ranks/counts-normal"
	args := []string{"trace", "--format", "json", "--counts", statistics, fixtures +
		"deepseek-ep4-ranks/normal.rank0.sqlite"}
	nulls := func(model ...string) (traced, counted []float64) {
		var ofTrace trace.Trace
		ask(t, exitDone, &ofTrace, append(slices.Clone(args), model...)...)
		for _, s := range ofTrace.Imbalance {
			if s.Quantity == imbalance.Load {
				traced = append(traced, float64(s.NullP95))
			}
		}
		var ofCounts countsAnswer
		ask(t, exitDone, &ofCounts, append([]string{"counts", "--format", "json", statistics}, model...)...)
		for _, l := range ofCounts.Imbalance {
			counted = append(counted, *l.NullP95)
		}
		if len(traced) != 4 || !slices.Equal(traced, counted) {
			t.Errorf("%v: trace has %v, counts %v", model, traced, counted)
		}
		return traced, counted
	}
	flat, _ := nulls()
	grouped, _ := nulls("--model", "deepseek-v3")
	config, _ := nulls("--model", fixtures+"../router/presets/deepseek-v3.json")
	if grouped[0] <= flat[0] || !slices.Equal(grouped, config) {
		t.Errorf("null p95: %v without groups, %v with, %v from the config", flat, grouped, config)
	}
}

// Counts that record no ranks are taken to be on the trace's ranks, if all are there: then time is
// allocated, and the counts of the other arm contradict it. Counts of other steps are not used.
func TestCountsTakeTheRanksOfTheTrace(t *testing.T) {
	traced := func(code int, counts string, ranks string) (a trace.Trace, codes []string) {
		ask(t, code, &a, "trace", "--format", "json", "--counts", fieldResults+counts,
			fieldResults+"vllm-qwen3-normal.rank"+ranks+".json.gz")
		for _, w := range a.Warnings {
			codes = append(codes, w.Code)
		}
		return a, codes
	}
	a, codes := traced(exitDone, "vllm-qwen3-normal.counts.json", "?")
	if len(a.Experts) != 48*128 || !slices.Contains(codes, "counts_assumed_ranks") ||
		slices.Contains(codes, "counts_no_ranks") || slices.Contains(codes, trace.CountsContradict) {
		t.Fatalf("%d experts, warnings %v", len(a.Experts), codes)
	}
	for _, e := range a.Experts {
		if e.Rank != e.Expert/64 || e.Basis != imbalance.Allocated {
			t.Fatalf("%+v: want expert %d on rank %d", e, e.Expert, e.Expert/64)
		}
	}
	if _, codes = traced(exitInconclusive, "vllm-qwen3-perfect.counts.json", "?"); !slices.Contains(codes, trace.CountsContradict) {
		t.Errorf("counts of the other arm: %v", codes)
	}
	if a, codes = traced(exitDone, "vllm-qwen3-normal.decode.counts.json", "?"); !slices.Contains(codes, trace.OtherSteps) {
		t.Errorf("counts of decode beside prefill: %d experts, %v", len(a.Experts), codes)
	}
	if a, codes = traced(exitDone, "vllm-qwen3-normal.counts.json", "0"); len(a.Experts) != 0 ||
		!slices.Contains(codes, "counts_no_ranks") {
		t.Errorf("one of two ranks: %d experts, %v", len(a.Experts), codes)
	}
}

// Counts of a model whose first three layers are dense begin at layer 3; the trace infers
// MoE layers from 0. They are taken in order, and get the numbers of the counts; a layer less is refused.
func TestCountsAfterDenseLayers(t *testing.T) {
	content := get(fieldResults + "vllm-qwen3-normal.counts.json")
	var counts struct {
		Layers [][]int `json:"logical_count"`
	}
	require.NoError(t, json.Unmarshal([]byte(content), &counts))
	moe, dense := counts.Layers, slices.Repeat([][]int{make([]int, 128)}, 3)
	read := func(code int, layers [][]int) (a struct {
		Imbalance, Experts []map[string]any
	}) {
		counts.Layers = layers
		content, _ := json.Marshal(counts)
		path := filepath.Join(t.TempDir(), "c.json")
		require.NoError(t, os.WriteFile(path, content, 0o644))
		into := any(&a)
		if code != exitDone {
			into = nil
		}
		ask(t, code, into, append([]string{"trace", "--json", "--counts", path}, fieldFiles(t, "vllm-qwen3-normal.rank?.json.gz")...)...)
		return a
	}
	a, b := read(exitDone, moe), read(exitDone, slices.Concat(dense, moe))
	for _, row := range slices.Concat(a.Imbalance, a.Experts) {
		if layer, ok := row["layer"].(float64); ok {
			row["layer"] = layer + 3
		}
	}
	if len(a.Imbalance) < 96 || !reflect.DeepEqual(a.Imbalance, b.Imbalance) || !reflect.DeepEqual(a.Experts, b.Experts) {
		t.Errorf("counts that begin at layer 3 give another result: %d and %d rows", len(a.Imbalance), len(b.Imbalance))
	}
	read(exitUsage, slices.Concat(dense, moe[1:]))
}
