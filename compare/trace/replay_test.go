package trace

import (
	"math"
	"testing"
)

// The law: a replay of a real capture that changes nothing takes within 2 % what was recorded, in each kind of
// steps.
func TestLawOfCaptures(t *testing.T) {
	for _, captures := range []string{"hf-qwen3-ep4/normal.rank?.json.gz", "hf-qwen3-ep4-nsys/perfect.rank?.sqlite",
		"vllm/qwen3-normal.rank?.json.gz", "deepseek-ep4-ranks/normal.rank?.sqlite",
		"field/results/vllm-four-h100/dep.rank?.json.gz", "field/results/vllm-four-h100/perfect.rank?.json.gz"} {
		replays := mustRead(t, Options{Threshold: 0.1}, inTestdata(t, captures)...).Replays
		for _, p := range replays {
			if math.Abs(float64(p.Law)) > 0.02 {
				t.Errorf("%s, kind %d: off by %.4f", captures, p.Kind, p.Law)
			}
		}
		if len(replays) == 0 {
			t.Errorf("%s: no replays", captures)
		}
	}
}
