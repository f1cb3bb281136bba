package nsys

import (
	"strings"
	"testing"
)

// Of 100 ns, 40 are placed by a range whatever the name, 10 by the name, 30 by a
// name that fuses phases, and 20 by nothing.
func TestUnknownAndFusedTimeByName(t *testing.T) {
	f := newFixture().push(0, 0, 99, "layer 0 router").work(0, 1, 10, 40, "void mine<(int)4>(int *)").
		work(0, 2, 200, 10, "ncclDevKernel_SendRecv(x)").
		work(0, 3, 300, 30, "void deep_gemm::sm100_bf16_mega_moe_impl<(int)4>(int *)").
		work(0, 4, 400, 12, "void mine<(int)4>(int *)").work(0, 5, 500, 8, "void yours<(int)4>(int *)")
	trace := mustRead(t, Options{}, f.write(t, "unknown.sqlite"))
	unknown := map[string]int64{}
	for _, k := range trace.Kernels {
		unknown[k.Name] = k.UnknownNS
		if strings.Contains(k.Name, "nccl") {
			equal(t, "library", k.Library, "NCCL")
		}
	}
	equal(t, "mine", unknown["void mine<(int)4>(int *)"], 12)
	equal(t, "yours", unknown["void yours<(int)4>(int *)"], 8)
	equal(t, "unknown phase", phaseTime(trace, 0, None, PhaseUnknown), 20)
	for code, want := range map[string]string{
		"unknown_kernels": "20.0 % of the GPU time is in kernels whose phase neither a range nor their name tells: mine, yours;",
		"fused_kernels":   "30.0 % of the GPU time is in kernels that fuse several phases (deep_gemm::sm100_bf16_mega_moe_impl): it counts as experts, and includes dispatch and combine",
	} {
		found := false
		for _, w := range trace.Warnings {
			found = found || w.Code == code && strings.Contains(w.Text, want)
		}
		if !found {
			t.Errorf("no %s %q in %v", code, want, trace.Warnings)
		}
	}
}
