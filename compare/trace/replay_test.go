package trace

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/moebalance/moebalance/compare/replay"
)

// The law holds on every real capture whose ranks meet: a replay that changes nothing takes as
// long as what was recorded.
func TestLaw(t *testing.T) {
	if testing.Short() {
		t.Skip("every capture of several ranks")
	}
	results, shared := testdata+"/field/results/", testdata+"/../../shared/captures/"
	for _, pattern := range []string{
		testdata + "/gptoss-ep4-loop/normal.sqlite", testdata + "/gptoss-ep4-ranks/normal.*.sqlite",
		testdata + "/deepseek-ep4-ranks/normal.*.sqlite", testdata + "/deepseek-ep4-ranks/perfect.*.sqlite",
		testdata + "/hf-qwen3-ep4/normal.*.gz", testdata + "/hf-qwen3-ep4-nsys/normal.*.sqlite",
		results + "vllm-four-h100/normal.*.gz", results + "vllm-four-h100/perfect.*.gz",
		results + "vllm-qwen3-normal.*.gz",
		results + "transformers-two-h200/healthy.normal.*.gz", results + "transformers-two-h200/shared.normal.*.gz",
		results + "transformers-two-h200/late-host.normal.*.gz",
		results + "transformers-two-h200/middle-healthy.normal.*.gz",
		results + "transformers-two-h200/small-healthy.normal.*.gz",
		shared + "quantized/Amarlin/normal/*.gz", shared + "quantized/Bdeepgemm/normal/*.gz",
		shared + "quantized/Bdeepgemm/perfect/*.gz", shared + "quantized/Cgraph/normal/*.gz",
	} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			continue
		}
		trace := mustRead(t, Options{}, paths...)
		if len(trace.Replays) == 0 || trace.Replay() == nil {
			t.Errorf("%s: nothing is replayed", pattern)
		}
		for _, p := range trace.Replays {
			if !(math.Abs(p.Law.Float64()) <= replay.LawLimit) {
				t.Errorf("%s, kind %d: the law is off by %v", pattern, p.Kind, p.Law)
			}
		}
	}
}

// A rank that is missing may be the one that all wait for.
func TestNoReplayWithoutARank(t *testing.T) {
	trace := mustRead(t, Options{}, testdata+"/deepseek-ep4-ranks/normal.rank0.sqlite",
		testdata+"/deepseek-ep4-ranks/normal.rank1.sqlite")
	if len(trace.Replays) > 0 {
		t.Errorf("two of four ranks: %+v", trace.Replays)
	}
}
