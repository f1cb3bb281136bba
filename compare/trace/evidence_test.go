package trace

import (
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/kernel"
)

// A rule of the user wins over a range, and makes GEMMs of experts.
func TestPhaseOfTheUser(t *testing.T) {
	f := newFixture()
	for p, ns := range []int64{30, 10} {
		f.work(int64(p), 1, 10, ns, "mine")
		f.work(int64(p), 2, 100, 8, "someone's own kernel")
	}
	rule, err := kernel.ParseRule("experts=^mi.e$")
	if err != nil {
		t.Fatal(err)
	}
	trace := mustRead(t, Options{Threshold: 0.1, Phases: []kernel.Rule{rule}}, f.write(t, "mine.sqlite"))
	near(t, "max/mean", trace.Imbalance[0].MaxOverMean, 1.5)
	equal(t, "evidence", trace.Kernels[0].Evidence, "--phase")
	for _, text := range []string{"experts", "nothing=x", "experts=(", "experts=", ""} {
		if _, err := kernel.ParseRule(text); err == nil {
			t.Errorf("%q: want an error", text)
		}
	}
}

// Sampling takes the largest of the vocabulary with the same kernel as a gate.
func TestTopKOfSamplingIsNoRouter(t *testing.T) {
	trace := changed(t, inTestdata(t, "hf-qwen3-serving/rank0.json.gz"), func(int, *capture.Recording) {})
	for _, k := range trace.Kernels {
		if strings.Contains(k.Name, "gatherTopK") && k.Evidence != "position" {
			t.Errorf("%s is placed by %s", k.Name, k.Evidence)
		}
	}
	if c := kernel.Classify(
		"void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(int)"); c.Phase != PhaseUnknown || !c.TopK {
		t.Errorf("have %+v", c)
	}
}
