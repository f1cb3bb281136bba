package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// decodeStep is a pure decode step of so many requests.
func decodeStep(rank, requests router.OptInt, ms float64) Step {
	return Step{Rank: rank, Requests: requests, GeneratedTokens: requests, TimeMS: router.Number(ms), Clock: gpuForward}
}

func TestCutWarmupByHand(t *testing.T) {
	prefill := Step{Requests: 4, ContextTokens: 512, TimeMS: 50, Clock: gpuForward}
	steps := []Step{prefill, decodeStep(0, 3, 9)} // filling up
	for range 20 {
		steps = append(steps, decodeStep(0, 4, 10)) // 20 full ones: a tenth, 2, is warm-up
	}
	steps = append(steps, prefill, decodeStep(0, 4, 10))                  // a prompt comes in between
	steps = append(steps, decodeStep(0, 2, 5), decodeStep(0, 1, 4))       // running empty
	steps = append(steps, Step{Rank: 1, ContextTokens: 512, Requests: 9}) // a rank that only prefills
	cutWarmup(steps)
	for i, s := range steps {
		// 21 full steps, at 2 … 21 and 23; a tenth of them, 2, is warm-up.
		want := i < 4 || i > 23
		if s.Warmup != want {
			t.Errorf("step %d: cut %v, want %v", i, s.Warmup, want)
		}
	}
	many := make([]Step, 500)
	for i := range many {
		many[i] = decodeStep(0, 8, 10)
	}
	cutWarmup(many)
	if many[9].Warmup != true || many[10].Warmup != false || many[499].Warmup {
		t.Errorf("of 500 full steps: the tenth is cut: %v, the eleventh: %v", many[9].Warmup, many[10].Warmup)
	}
	cutWarmup(nil)
}

// Ranks of attention data parallelism that run 30 and 10 requests are 50 % uneven, and 22 and 20 are not.
func TestUnevenRequestsOfRanks(t *testing.T) {
	for requests, want := range map[[2]int]bool{{30, 10}: true, {22, 20}: false} {
		var text strings.Builder
		for iter := range 30 {
			for rank, n := range requests {
				fmt.Fprintf(&text, "iter = %d, global_rank = %d, rank = %[2]d, num_scheduled_requests = %d, host_step_time = 12.5ms, "+
					"states = {'num_ctx_requests': 0, 'num_ctx_tokens': 0, 'num_generation_tokens': %[3]d}\n", iter+1, rank, n)
			}
		}
		r, err := Parse("log", strings.NewReader(text.String()), nil)
		if err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "requests are 50.0 % uneven") })
		if said != want {
			t.Errorf("%v requests: %q", requests, r.Warnings)
		}
	}
}
