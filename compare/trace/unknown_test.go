package trace

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// Of 100 ns, 40 are placed by a range whatever the name, 40 by names, and 20 by nothing.
func TestUnknownTimeByName(t *testing.T) {
	f := newFixture().push(0, 0, 99, "layer 0 router").work(0, 1, 10, 40, "void mine<(int)4>(int *)").
		work(0, 2, 200, 10, "ncclDevKernel_SendRecv(x)").
		work(0, 3, 300, 30, "void moefinalize_allreduce_fusion_kernel_oneshot_lamport<(int)4>(int *)").
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
	equal(t, "unknown phase", phaseTime(trace, 0, NoID, PhaseUnknown), 20)
	want := router.Args{"share": 0.2, "kernels": []any{"mine", "yours"}}
	if !slices.ContainsFunc(trace.Warnings, func(w router.Warning) bool {
		return w.Code == "unknown_kernels" && reflect.DeepEqual(w.Args, want)
	}) {
		t.Errorf("no %v in %v", want, trace.Warnings)
	}
}
