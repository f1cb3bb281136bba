package nsys

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/moebalance/moebalance/compare/capture"
)

const ignoreRange = "layer_wise_benchmarks ignore"

// Of 7 + 5 ns in a layer's range the 5 launched under an ignore range count in no
// number, neither as that layer's nor as unknown time, and the result says so.
func TestIgnoredRangesCountNowhere(t *testing.T) {
	f := newFixture().push(0, 0, 90, "[Executor] _forward_step 0: 1 ctx reqs").push(0, 5, 80, "layer 3 experts").push(0,
		40, 60, ignoreRange)
	f.work(0, 1, 10, 7, "gemm").work(0, 2, 45, 5, "copy")
	f.push(0, 500, 510, ignoreRange) // after the last kernel: no sign of a capture that ended early
	trace := mustRead(t, Options{}, f.write(t, "rank0.sqlite"))
	equal(t, "GPU time", trace.Coverage.GPUNS, 7)
	equal(t, "cells", len(trace.Cells), 1)
	equal(t, "kernel names", len(trace.Kernels), 1)
	equal(t, "time of the layer", phaseTime(trace, 0, 3, PhaseExperts), 7)
	warnings := trace.Exports[0].Warnings
	equal(t, "warnings", len(warnings), 1)
	equal(t, "warning", fmt.Sprint(warnings[0].Args), "map[ignored:1 kernels:2 time_ns:5]")
}

// A kernel whose graph node was captured under an ignore range is ignored in each
// replay.
func TestIgnoredGraphNodes(t *testing.T) {
	f := newFixture().push(0, 0, 30, "layer 3 experts").push(0, 10, 20, ignoreRange).push(0, 200, 300,
		"[Executor] _forward_step 0:")
	f.sql("INSERT INTO CUDA_GRAPH_NODE_EVENTS VALUES (5,5,%d,101,NULL),(15,15,%d,102,NULL)", tid(0, 1), tid(0, 1))
	f.call(0, 1, 210).kernel(0, 1, 220, 227, "gemm").kernel(0, 1, 230, 235, "copy")
	f.sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET graphNodeId = iif(start = 220, 101, 102)")
	trace := mustRead(t, Options{}, f.write(t, "rank0.sqlite"))
	equal(t, "GPU time", trace.Coverage.GPUNS, 7)
	equal(t, "time of the layer", phaseTime(trace, 0, 3, PhaseExperts), 7)
}

func TestNothingButIgnoredKernels(t *testing.T) {
	path := newFixture().push(0, 0, 60, ignoreRange).work(0, 1, 10, 7, "gemm").write(t, "rank0.sqlite")
	if _, err := Read(context.Background(), []string{path}, Options{}); !errors.Is(err, capture.ErrNoKernels) {
		t.Errorf("have %v", err)
	}
}
