package trace

import "testing"

// Of two ranks that run 8,192 tokens, the same or each as many of its own, counts of 64 tokens a step are of other
// steps, and so are all counts of at most 8,191. Nothing is known of counts without tokens, and of steps that no range
// names.
func TestCountsOfOtherSteps(t *testing.T) {
	const prefill = "execute_context_1(8192)_generation_0(0)"
	for _, c := range []struct {
		tokens, most float64 // of a step; where that is at most
		step         string
		other        bool
	}{
		{64, 0, prefill, true}, {8192, 0, prefill, false}, {4096, 0, prefill, false}, {4095, 0, prefill, true},
		{32768, 0, prefill, false}, {32769, 0, prefill, true}, {0, 8191, prefill, true}, {0, 8192, prefill, false},
		{8192, 0, "execute_context_0(0)_generation_64(64)", true}, {0, 0, prefill, false}, {64, 0, "step", false},
	} {
		of, tokens := &exportSummary{StepNames: map[int32]string{3: c.step}}, c.tokens+c.most
		r := reduction{trace: &Trace{}, ranks: []*rankEvents{{of: of}, {of: of}}, counted: map[int]int{3: 0},
			options: Options{Recorded: Recorded{StepTokens: tokens, AtMost: c.most > 0}}}
		r.dropOtherSteps()
		if other := r.trace.Warned(OtherSteps); other != c.other || other != (r.options.Recorded.StepTokens != tokens) {
			t.Errorf("%v tokens beside %q: %v", tokens, c.step, other)
		}
	}
}

// Load and time per rank, by hand: right counts, counts of the other arm, of another run,
// and of batches so small that GEMMs read weights.
func TestContradicts(t *testing.T) {
	for _, c := range []struct {
		name       string
		time, load []float64
		slots      float64
		doubted    bool
	}{
		{"time follows load", []float64{4.1, 2, 2, 1.9}, []float64{176, 74, 75, 75}, 512, false},
		{"time follows it weakly", []float64{1, 1, 1.24, 1}, []float64{70, 75, 185, 70}, 128, false},
		{"even both", []float64{1, 1.01, 1, 1}, []float64{100, 100, 100, 100}, 512, false},
		{"uneven load, even time", []float64{1, 1.01, 1, 1}, []float64{176, 74, 75, 75}, 512, true},
		{"the same in decoding", []float64{1, 1.01, 1, 1}, []float64{176, 74, 75, 75}, 16, false},
		{"even load, uneven time", []float64{4.1, 2, 2, 1.9}, []float64{100, 100, 100, 101}, 512, true},
		{"another rank", []float64{4.1, 2, 2, 1.9}, []float64{74, 176, 75, 75}, 512, true},
		{"two busy ranks", []float64{4.1, 4, 2, 1.9}, []float64{170, 176, 75, 75}, 512, false},
	} {
		if why := contradicts(c.time, c.load, c.slots); (why != "") != c.doubted {
			t.Errorf("%s: have %q", c.name, why)
		}
	}
}
