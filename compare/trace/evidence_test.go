package trace

import (
	"testing"

	"github.com/moebalance/moebalance/compare/kernel"
)

// A rule of the user wins over a range, and makes GEMMs of experts.
func TestPhaseOfTheUser(t *testing.T) {
	f := newFixture()
	for p, ns := range []int64{30, 10} {
		f.work(int64(p), 1, 10, ns, "mine")
		f.work(int64(p), 2, 100, 8, "someone's own kernel")
	}
	rule := must(kernel.ParseRule("experts=^mi.e$"))
	trace := mustRead(t, Options{Threshold: 0.1, Phases: []kernel.Rule{rule}}, f.write(t, "mine.sqlite"))
	near(t, "max/mean", trace.Imbalance[0].MaxOverMean, 1.5)
	equal(t, "phase", trace.Kernels[0].Placed, PhaseExperts)
	for _, text := range []string{"experts", "nothing=x", "experts=(", "experts=", ""} {
		if _, err := kernel.ParseRule(text); err == nil {
			t.Errorf("%q: want an error", text)
		}
	}
}
