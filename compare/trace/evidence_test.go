package trace

import (
	"path/filepath"
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

// The captures' kernels that no rule knows are PyTorch's general ones only: all
// grouped GEMMs, GEMMs, collectives and top-k are named.
func TestKernelsOfTheCaptures(t *testing.T) {
	for _, name := range []string{"gptoss-ep4-loop/normal.sqlite", "deepseek-ep4-ranks/normal.rank0.sqlite",
		"gptoss-graph/node-normal.sqlite"} {
		trace := mustRead(t, Options{}, filepath.Join(testdata, name))
		for _, k := range trace.Kernels {
			general := strings.Contains(k.Name, "at::native::") || strings.Contains(k.Name, "at_cuda_detail::cub") ||
				strings.Contains(k.Name, "<unnamed>::") ||
				strings.Contains(k.Name, "kernelHistogram1D") || strings.Contains(k.Name, "compute_cuda_kernel")
			if (k.Phase == PhaseUnknown) != general {
				t.Errorf("%s: %s is %q", name, k.Name, k.Phase)
			}
		}
	}
}
