package trace

import (
	"fmt"
	"testing"
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
	equal(t, "warning", fmt.Sprint(warnings[0].Args), "map[ignored:1 kernels:2]")
}
