package capture

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
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
	rec := require.Value(readTorch(context.Background(), strings.NewReader("["+strings.Join(events, ",")+"]"), nil))
	same(t, "name", rec.KernelNames[0], "at::cuda::detail::prepare_grouped_gemm_data()")
	for i, want := range []string{"aten::_grouped_mm", "", ""} {
		same(t, "operator", rec.Operators[rec.Launches[rec.Kernels[i].Launch].Operator], want)
	}
	same(t, "lost", rec.LostKernels, 1)
}

// Launches k without a kernel are lost, but for those between the begin ( and the end ) of a
// graph's capture on their thread, of which a recording may miss either.
func TestLaunchesWhileAGraphIsCaptured(t *testing.T) {
	kinds := map[rune]callKind{'k': kernelCall, 'g': graphLaunch, '(': beginCapture, ')': endCapture}
	for letters, want := range map[string]int64{
		"k": 1, "kk(kkk)k": 3, "kk(kkk)(k)k": 3, "(kkk": 0, "k(k": 1, "kkk)k": 1, "kgk": 2,
	} {
		d := newDraft()
		for i, letter := range letters {
			d.addCall(kinds[letter], Call{Start: int64(i), Thread: d.callThreads.Number(1 << 24)}, uint32(i))
		}
		d.addKernel(Kernel{Device: d.device(1<<24, 0)}, noCorrelation, 0)
		same(t, letters, d.join().LostKernels, want)
	}
	for name, want := range map[string]callKind{
		"cudaLaunchKernelExC_v11060": kernelCall, "cuLaunchKernelEx": kernelCall, "hipModuleLaunchKernel": kernelCall,
		"cudaGraphLaunch_v10000": graphLaunch, "cudaLaunchHostFunc_v10000": otherCall,
		"cudaStreamBeginCapture_v10000": beginCapture, "cudaStreamEndCapture_ptsz": endCapture,
		"cudaMemcpyAsync_v3020": waitCall, "cudaStreamSynchronize_v3020": waitCall, "cudaMemsetAsync_v3020": otherCall,
	} {
		same(t, name, callKindOf(name), want)
	}
}

// An execution has the launch of its process and correlation id: of several the last that
// began before it, or the first. Launches come in any order, and launches of nothing go.
func TestJoin(t *testing.T) {
	const one, two = 1 << 24, 2 << 24 // processes
	d := newDraft()
	for _, l := range []struct {
		process, start int64
		id             uint32
	}{{two, 3, 5}, {one, 8, 9}, {one, 1, 5}, {one, 6, 5}, {one, 2, 7}, {two, 9, 1}, {one, 4, noCorrelation}} {
		d.addCall(kernelCall, Call{Start: l.start, End: l.start, Thread: d.callThreads.Number(l.process + 3)}, l.id)
	}
	want := []int64{3, 1, 6, 6, 1, -1, -1, 8, 2}
	for _, k := range []struct {
		process, start int64
		id             uint32
	}{{two, 9, 5}, {one, 5, 5}, {one, 6, 5}, {one, 7, 5}, {one, 0, 5}, {one, 9, 6}, {one, 9, noCorrelation}, {one, 9, 9},
		{one, 9, 7}} {
		d.addKernel(Kernel{Start: k.start, End: k.start, Device: d.device(k.process, 0)}, k.id, 0)
	}
	rec := d.join()
	for i, k := range rec.Kernels {
		have := int64(-1)
		if k.Launch >= 0 {
			have = rec.Launches[k.Launch].Start
		}
		same(t, "start of the launch", have, want[i])
	}
	same(t, "launches", len(rec.Launches), 5)
	same(t, "lost", rec.LostKernels, 2)
}
