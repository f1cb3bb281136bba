package trace

import (
	"fmt"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

// Two ranks pass attention and dense GEMMs of 30 and 10 ns in each of three steps, and experts of equal load and time:
// max/mean of attention is 60/40. A slow GPU takes longer for equal load, which is no contradiction.
func TestUnevenAttention(t *testing.T) {
	read := func(tokens [2]int) *Trace {
		ranks := make([]string, 2)
		for p := range int64(2) {
			f, own := newFixture(), []int64{30, 10}[p]
			experts := map[bool]int64{true: own, false: 40}[tokens == [2]int{200, 200}]
			for step := range int64(3) {
				at, name := 1000*step, fmt.Sprintf("execute_context_1(%d)_generation_0(0)", tokens[p])
				if tokens[p] == 0 {
					name = fmt.Sprintf("[Executor] _forward_step %d: 1 ctx reqs, 0 gen reqs", step)
				}
				f.push(0, at, at+900, name).push(0, at+200, at+290, "layer 0 experts")
				for i, kernel := range []string{"flash_fwd_kernel", "nvjet_tst_128x128", "fused_moe_kernel"} {
					f.work(0, 3*step+int64(i)+1, at+100*int64(i)+20, []int64{own, own, experts}[i], kernel)
				}
			}
			ranks[p] = f.write(t, fmt.Sprintf("r.rank%d.sqlite", p))
		}
		return mustRead(t, Options{Recorded: recordedCounts(2, []int64{900, 900, 900, 900}, 0)}, ranks...)
	}
	for tokens, known := range map[[2]int]bool{{300, 100}: true, {0, 0}: false} {
		trace := read(tokens)
		if slow, _ := trace.SlowGPUs(); slow != nil || trace.Attention == nil || (trace.Attention.Tokens != nil) != known {
			t.Fatalf("%v tokens: slow GPU %v, %+v of %+v", tokens, slow, trace.Attention, trace.Speeds)
		}
		require.Near(t, "imbalance", trace.Attention.Imbalance, 0.5, 1e-6)
	}
	// As many tokens do not take three times as long.
	if trace := read([2]int{200, 200}); trace.Attention != nil {
		t.Errorf("equal tokens: %+v", trace.Attention)
	} else if slow, _ := trace.SlowGPUs(); slow == nil || trace.Warned(CountsContradict) {
		t.Errorf("equal tokens: slow GPU %v, warnings %v", slow, trace.Warnings)
	}
	// A slower GPU takes longer for experts, too.
	if trace := read([2]int{100, 100}); trace.Attention != nil || trace.Speeds != nil {
		t.Errorf("equal tokens and experts: %+v, %+v", trace.Attention, trace.Speeds)
	}
}
