package metrics

import (
	"strings"
	"testing"
)

// Requests of equal totals and other lengths have another root mean square.
func TestLengths(t *testing.T) {
	const report = `{"num_prompts": 2, "duration": 4, "completed": 2, "total_input_tokens": 200, "total_output_tokens": 20, "request_throughput": 1, "output_throughput": 5, "mean_ttft_ms": 1, "input_lens": [LENS], "output_lens": [10, 10]}`
	of := func(lens string) Lengths {
		r, err := Parse("r.json", strings.NewReader(strings.Replace(report, "LENS", lens, 1)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.Lengths
	}
	if a, b := of("100, 100"), of("40, 160"); a != (Lengths{100, 10}) || !(b.Input > 116 && b.Input < 117) {
		t.Errorf("%+v and %+v, want 100 and √13600 = 116.6", a, b)
	}
}
