package metrics

import (
	"fmt"
	"math"
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

func TestMatchStepsByHand(t *testing.T) {
	normal := []Step{decodeStep(0, 4, 10), decodeStep(0, 4, 14), decodeStep(0, 2, 8), decodeStep(1, 4, 99)}
	perfect := []Step{decodeStep(0, 4, 10), decodeStep(0, 2, 6), decodeStep(0, 2, 10), decodeStep(0, 1, 3)}
	perfect = append(perfect, Step{Requests: 4, Warmup: true, TimeMS: 1000, Clock: gpuForward},
		Step{Requests: 4, TimeMS: router.Undefined(), Clock: gpuForward})
	m := matchSteps(normal, perfect)
	// Shape 4: 12 ms against 10, two steps; shape 2: 8 against 8, one step.
	// Gain = (2·12 + 8) / (2·10 + 8) − 1 = 32/28 − 1.
	if math.Abs(float64(m.Gain)-(32.0/28-1)) > 1e-12 {
		t.Errorf("gain %v, want %v", m.Gain, 32.0/28-1)
	}
	// 32 of 131 ms, and 26 of 29 ms.
	if math.Abs(float64(m.NormalShare)-32.0/131) > 1e-12 || math.Abs(float64(m.PerfectShare)-26.0/29) > 1e-12 {
		t.Errorf("shares %v and %v, want 32/131 and 26/29", m.NormalShare, m.PerfectShare)
	}
	if len(m.Strata) != 2 || m.Strata[0].Requests != 2 || m.Strata[1].NormalMeanMS != 12 ||
		m.Strata[1].PerfectSteps != 1 {
		t.Errorf("strata %+v", m.Strata)
	}
	unknown := []Step{{Requests: -1, ContextTokens: -1, GeneratedTokens: -1, TimeMS: 5, Clock: elapsed}}
	if m := matchSteps(unknown, unknown); m.Gain.Defined() || len(m.Strata) != 0 {
		t.Errorf("steps of unknown shape match: %+v", m)
	}
	perfect[0].Clock = hostStep
	if m := matchSteps(normal, perfect); m.Clock != "" || m.Gain.Defined() {
		t.Errorf("mixed clocks match: %+v", m)
	}
	if m := matchSteps(nil, nil); m.Gain.Defined() || len(m.Strata) != 0 {
		t.Errorf("nothing matches: %+v", m)
	}
}

func TestMatchStepsIsAntisymmetricAndOrderFree(t *testing.T) {
	normal := []Step{decodeStep(0, 4, 10), decodeStep(0, 4, 14), decodeStep(1, 4, 12)}
	perfect := []Step{decodeStep(1, 4, 9), decodeStep(0, 4, 11), decodeStep(0, 4, 9)}
	there, back := matchSteps(normal, perfect), matchSteps(perfect, normal)
	if d := float64((1+there.Gain)*(1+back.Gain)) - 1; math.Abs(d) > 1e-12 {
		t.Errorf("gains %v and %v do not undo each other", there.Gain, back.Gain)
	}
	normal[0], normal[2] = normal[2], normal[0]
	if again := matchSteps(normal, perfect); again.Gain != there.Gain {
		t.Errorf("another order of steps gives %v, not %v", again.Gain, there.Gain)
	}
}

func matchSteps(normal, perfect []Step) Match {
	var m Matcher
	m.Add(0, normal)
	m.Add(1, perfect)
	return m.Match()
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
