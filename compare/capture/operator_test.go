package capture

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// A kernel's operator is the one with its external id, and a launch without a kernel
// is lost unless graphs are captured.
func TestOperatorsOfATorchTrace(t *testing.T) {
	event := func(category, name string, at int, args string) string {
		return fmt.Sprintf(`{"ph":"X","cat":%q,"name":%q,"pid":1,"tid":7,"ts":%d,"dur":1,"args":{%s}}`, category, name,
			at, args)
	}
	events := []string{
		event("cpu_op", "aten::_grouped_mm", 1, `"External id": 40`),
		event("user_annotation", "nccl:all_reduce", 1, `"External id": 41`),
		event("cuda_runtime", "cudaLaunchKernel", 2, `"correlation": 5, "External id": 40`),
		event("cuda_runtime", "cudaLaunchKernel", 3, `"correlation": 6`),
		event("cuda_runtime", "cudaLaunchKernel", 3, `"correlation": 40`),
		event("cuda_runtime", "cudaLaunchKernel", 4, `"correlation": 7`),
		event("kernel", "_ZN2at4cuda6detail25prepare_grouped_gemm_dataEv", 5,
			`"device": 0, "correlation": 5, "External id": 40`),
		event("kernel", "k", 6, `"device": 0, "correlation": 6, "External id": 41`),
		event("kernel", "k", 7, `"device": 0, "correlation": 40, "External id": 40`),
	}
	rec, err := readTorch(context.Background(), strings.NewReader("["+strings.Join(events, ",")+"]"), nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "name", rec.KernelNames[0], "at::cuda::detail::prepare_grouped_gemm_data()")
	for i, want := range []string{"aten::_grouped_mm", "", ""} {
		same(t, "operator", rec.Operators[rec.Launches[rec.Kernels[i].Launch].Operator], want)
	}
	same(t, "lost", rec.LostKernels, 1)
	begin, end := event("cuda_runtime", "cudaStreamBeginCapture", 1, `"correlation": 9`),
		event("cuda_runtime", "cudaStreamEndCapture", 3, `"correlation": 10`)
	for want, more := range map[int64][]string{
		0: {begin}, // the launch at 4 makes a node
		1: {end, begin},
		2: {end, begin, event("cuda_runtime", "cudaLaunchKernel", 2, `"correlation": 11`),
			event("cuda_runtime", "cudaLaunchKernel", 5, `"correlation": 12`)},
	} {
		if rec, err = readTorch(context.Background(),
			strings.NewReader("["+strings.Join(append(more, events...), ",")+"]"), nil); err != nil {
			t.Fatal(err)
		}
		same(t, "lost beside a graph's capture", rec.LostKernels, want)
	}
}

func TestLaunchesWhileAGraphIsCaptured(t *testing.T) {
	for calls, want := range map[string]int64{
		"k":           1,
		"kk(kkk)k":    3,
		"kk(kkk)(k)k": 3,
		"(kkk":        0,
		"k(k":         1,
		"kkk)k":       1, // the second half of a table
		"k.k":         2,
	} {
		c := caller{}
		for _, letter := range calls {
			c.withoutWork(map[rune]callKind{'k': kernelCall, '(': beginCapture, ')': endCapture,
				'.': otherCall}[letter])
		}
		same(t, calls, (&launchReader{callers: []caller{c}}).lostKernels(), want)
	}
	for name, want := range map[string]callKind{
		"cudaLaunchKernelExC_v11060": kernelCall, "cuLaunchKernelEx": kernelCall, "cudaGraphLaunch_v10000": otherCall,
		"cudaLaunchHostFunc_v10000":     otherCall,
		"cudaStreamBeginCapture_v10000": beginCapture, "cudaStreamEndCapture_ptsz": endCapture,
		"cudaMemcpyAsync_v3020": otherCall,
	} {
		same(t, name, callKindOf(name), want)
	}
}
