package trace

import (
	"slices"
	"testing"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/testdata/require"
)

// A rule of the user wins over a range, and makes GEMMs of experts.
func TestPhaseOfTheUser(t *testing.T) {
	f := newFixture()
	for p, ns := range []int64{30, 10} {
		f.work(int64(p), 1, 10, ns, "mine")
		f.work(int64(p), 2, 100, 8, "someone's own kernel")
	}
	rule := require.Value(kernel.ParseRule("experts=^mi.e$"))
	trace := mustRead(t, Options{Threshold: 0.1, Phases: []kernel.Rule{rule}}, f.write(t, "mine.sqlite"))
	require.Near(t, "max/mean", trace.Imbalance[0].MaxOverMean, 1.5, 1e-6)
	equal(t, "phase", trace.Kernels[0].Placed, PhaseExperts)
	for _, text := range []string{"experts", "nothing=x", "experts=(", "experts=", ""} {
		if _, err := kernel.ParseRule(text); err == nil {
			t.Errorf("%q: want an error", text)
		}
	}
}

// A GEMM whose name serves dense layers too is of experts where all of the name run behind a router. What nothing names
// before the router's kernel is the router's: of the gate, or of the switch.
func TestExpertsByPlace(t *testing.T) {
	for dense, phase := range map[string]Phase{"nvjet_x": PhaseExperts, "_matmul": PhaseUnknown} {
		f := newFixture()
		for i, name := range []string{"flash_fwd_kernel", "x", dense, "add", "add", "topkGatingSoftmax", "_matmul", "_matmul", "rms_norm_kernel", dense} {
			f.work(0, int64(i+1), int64(100*i), 10, name)
		}
		trace := mustRead(t, Options{}, f.write(t, "x.sqlite"))
		named := func(k KernelStat) bool { return k.Name == "_matmul" && k.Phase == phase }
		equal(t, dense, slices.ContainsFunc(trace.Kernels, named), true)
		add := func(k KernelStat) bool {
			return k.Name == "add" && (k.Placed == PhaseRouter) == (phase == PhaseExperts)
		}
		equal(t, "the router's", slices.ContainsFunc(trace.Kernels, add), true)
	}
}
