package trace

import "testing"

// Of batches without a request the first runs experts for the tokens of other ranks, and is a step; the second
// runs none: vLLM asked for work, and had none.
func TestDummyBatches(t *testing.T) {
	f := newFixture()
	for i, name := range []string{"execute_context_1(8)_generation_0(0)", "execute_context_0(0)_generation_0(0)",
		"execute_context_0(0)_generation_0(0)", "execute_context_0(0)_generation_8(8)"} {
		at := int64(1000 * i)
		f.push(0, at, at+900, name).work(0, int64(2*i+1), at+10, 5, "copy")
		if i != 2 {
			f.push(0, at+50, at+800, "layer 0 experts").work(0, int64(2*i+2), at+100, 30, "fused_moe_kernel")
		}
	}
	trace := mustRead(t, Options{}, f.write(t, "dummy.sqlite"))
	var names []string
	for _, k := range trace.StepKinds {
		names = append(names, k.Name)
	}
	if len(trace.StepTimes) != 3 || len(names) != 3 {
		t.Errorf("%d steps of kinds %q", len(trace.StepTimes), names)
	}
}
